"""Classification of PyTorch's errors, which have only a text."""

import torch.distributed as dist


def is_process_group_error(error: Exception) -> bool:
    """Return whether an error may come from an operation on a process group.

    PyTorch raises ``torch.distributed.DistError`` for errors of NCCL and of its store, and a plain
    RuntimeError for those of Gloo. Their texts all contain the name of Gloo's source file, such as
    "[.../gloo/transport/tcp/pair.cc:534] Connection closed by peer". No attribute shows the origin.
    """
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower()
