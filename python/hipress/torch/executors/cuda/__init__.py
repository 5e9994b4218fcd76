"""The executor of buckets on a GPU, whose messages go over NCCL.

It only queues work on a stream, in an order that is the same on all ranks. :mod:`.layout` lays a
bucket's graphs out in messages and memory, :mod:`.schedule` in rounds, :mod:`.program` queues one
step, :mod:`.calls` launches kernels, and :mod:`.device` connects a bucket with the stream.
"""
