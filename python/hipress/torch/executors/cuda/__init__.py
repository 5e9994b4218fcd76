"""The executor of buckets on a GPU, whose messages go over NCCL.

It only queues work on a stream, in an order that is the same on all ranks. :mod:`.layout` divides a
bucket's graphs into rounds and lays out messages and memory, :mod:`.cuda_program` launches the
kernels of one step, and :mod:`.device` connects a bucket with the stream.
"""
