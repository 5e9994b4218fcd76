"""PyTorch's own methods to synchronize a bucket, as in a job without HiPress."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist

from hipress.autotune.methods import BF16_HOOK, UNCOMPRESSED
from hipress.torch.executors.gloo_threads import awaited


class FlatBucket:
    """The part of DDP's bucket that PyTorch's hooks use."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat

    def buffer(self) -> torch.Tensor:
        """Return the gradients."""
        return self._flat


Hook = Callable[[dist.ProcessGroup, FlatBucket], torch.futures.Future]


def sum_hook(group: dist.ProcessGroup, bucket: FlatBucket) -> torch.futures.Future:
    """Sum gradients, uncompressed."""
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(awaited(lambda done: done.value()[0]))


def mean_hook(group: dist.ProcessGroup, bucket: FlatBucket) -> torch.futures.Future:
    """Average gradients, with the bits of PyTorch's allreduce_hook."""
    bucket.buffer().div_(group.size())
    return sum_hook(group, bucket)


def bf16_hook(group: dist.ProcessGroup, bucket: FlatBucket) -> torch.futures.Future:
    """Average gradients in bfloat16, with the bits of PyTorch's bf16_compress_hook."""
    flat = bucket.buffer()
    narrow = flat.to(torch.bfloat16).div_(group.size())
    work = dist.all_reduce(narrow, group=group, async_op=True)
    return work.get_future().then(awaited(lambda done: flat.copy_(done.value()[0])))


def scatter_hook(group: dist.ProcessGroup, bucket: FlatBucket) -> torch.futures.Future:
    """Reduce-scatter rows, uncompressed, and wait, as FSDP2 does. The result is this rank's row."""
    flat = bucket.buffer()
    row = flat.new_empty(flat.numel() // group.size())
    dist.reduce_scatter_tensor(row, flat, group=group)  # with Gloo its work has no future
    done: torch.futures.Future = torch.futures.Future()
    done.set_result(row)
    return done


MEANS: Mapping[str, Hook] = {
    UNCOMPRESSED.name: mean_hook,
    BF16_HOOK.name: bf16_hook,
}
"""PyTorch's methods to average gradients, by name."""
SUMS: Mapping[str, Hook] = {UNCOMPRESSED.name: sum_hook}
"""PyTorch's methods to sum gradients."""
SCATTERS: Mapping[str, Hook] = {UNCOMPRESSED.name: scatter_hook}
"""Methods that measure reduce-scatters. In training FSDP2 calls its own."""
