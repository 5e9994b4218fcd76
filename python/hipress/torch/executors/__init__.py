"""Executors of a bucket's graphs: native engine, CUDA executor, the user's process group.

What belongs here: how the gradients of a bucket travel. What does not: DDP, FSDP2 and optimizers
(``integrations``), and what is kept from step to step (``state``).

:mod:`.collectives` chooses the graph of each gradient: an all-reduce, a reduce-scatter, or, with
the default topology, a ring for long uncompressed gradients. A compressed gradient is a key, which
stays when DDP moves the gradient to another bucket. Adjacent uncompressed gradients are one key,
without a copy; small ones share the bucket's fusion buffer. Then one of three ways is used::

    host.py        native engine, host memory: keys, buckets and their steps
      staging.py   for GPUs: copies a bucket to host memory and back, on streams of its own. One
                   thread waits for such copies; the training thread does not.
    user_group.py  all-reduce on the user's process group, for what the engine cannot take: other
                   dtypes, and uncompressed gradients on a GPU whose group is NCCL's
    cuda           with encode_on="device": kernels and NCCL's messages on a stream

:mod:`.engine` keeps the engine of each process group; :mod:`.group_job` makes the ranks of a group
workers of a job. They meet through the group's store: the first rank runs the scheduler, and
leaves its address and a new secret there, unless all ranks have HIPRESS_SECRET.
:mod:`.gloo_threads` waits at the end of a process for what threads of Gloo still do.
"""
