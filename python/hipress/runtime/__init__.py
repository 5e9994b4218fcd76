"""A process's part in a job, on NumPy arrays: membership, keys, buckets, groups and saved states.

:mod:`~hipress.runtime.member` joins a job and leaves it; :mod:`~hipress.runtime.node` is a worker
of the key-value store; :mod:`~hipress.runtime.engine` is a worker whose encodes the caller binds.
Frameworks' tensors and optimizers do not belong here.
"""
