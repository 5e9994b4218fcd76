"""A process's part in a job, on NumPy arrays: it joins, has keys and buckets, and leaves.

What belongs here: everything that a front end needs of a job, whatever the framework. What does
not: tensors and optimizers of frameworks, and how a graph is built.

There are two ways to synchronize gradients::

    node.py      key-value store: push and pull by key, with or without servers. The store keeps
                 residuals. MXNet, TensorFlow and examples/frontend_template use it.
    engine.py    buckets without servers: one call for all gradients of a bucket. error_feedback.py
                 keeps the codec and the residual of each task that encodes, rolls them back, and
                 moves them to another number of ranks. PyTorch and elastic training use it.

* :mod:`member` joins a job and leaves it. :mod:`scheduler` makes a job of workers that already know
  each other: the first one runs the scheduler in a thread of its process. :mod:`process_end` leaves
  the job when the process ends, and :mod:`interrupts` handles Ctrl-C while a framework waits.
* :mod:`key_graphs` builds the graph of each key of a store: topology, partitions, and whether to
  compress it. :mod:`operations` are pushes and pulls in progress, which keep the arrays alive.
  :mod:`group` pushes several keys in one call; each of them stays a key of its own.
* :mod:`states` are files of residuals and of other state of codecs.

A job must agree on each key: all workers announce its size, type and a digest of its graph. Any
difference is an error on all of them.
"""
