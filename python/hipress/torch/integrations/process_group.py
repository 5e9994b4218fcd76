"""The process group backend "hipress": Gloo, but with compressed all-reduces.

>>> import hipress.torch
>>> torch.distributed.init_process_group("hipress")

All-reduces (sum, average) of floating tensors of at least HIPRESS_MIN_SIZE elements go compressed,
over HiPress's own connections; all else is Gloo's, and ``group.stats()`` says how much of what was
reduced that was, and why.
Because an all-reduce does not say whose gradient it is, nothing can be carried over to the next
one, so the codec must not keep a residual. From the environment, the same on all ranks:

- HIPRESS_COMPRESSION: maxmin (default), terngrad, natural, fp16, bf16, lossless
- HIPRESS_BITS, HIPRESS_BUCKET_SIZE (or QNCCL's names BITS and bucket_size): of maxmin
- HIPRESS_ENTROPY: 0 (default), or 1: an entropy coder behind the codec
- HIPRESS_TOPOLOGY: ps (default), or another topology's name
- HIPRESS_MIN_SIZE: default 16384
- HIPRESS_ENCODE_ON: host (default), or device: tensors on a GPU are encoded there, and their
  messages go over NCCL. All tensors that large must then be on a GPU
"""

from __future__ import annotations

import copy
import functools
import os
import threading
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from hipress.compression import Compressor
from hipress.torch.dtypes import DEVICE_TYPES, FLAGS
from hipress.torch.executors.cuda.device import check_type
from hipress.torch.gradient import Gradient
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start
from hipress.torch.stats import Stats, too_small
from hipress.torch.synchronizer import Synchronizer


def _environment(name: str, other: str = "", default: str = "") -> str:
    return os.environ.get(name) or os.environ.get(other) or default


def settings_from_environment() -> Settings:
    """Reads the settings from the environment's variables.

    :raises ValueError: for a value that is not allowed, or a codec that keeps a residual
    """
    type = _environment("HIPRESS_COMPRESSION", default="maxmin")
    params = {}
    if type == "maxmin":
        params = {
            "bits": _environment("HIPRESS_BITS", "BITS", "4"),
            "bucket": _environment("HIPRESS_BUCKET_SIZE", "bucket_size", "1024"),
        }
    size = _environment("HIPRESS_MIN_SIZE", default=str(MIN_SIZE))
    if not size.isdigit():
        raise ValueError(f"HIPRESS_MIN_SIZE must be a whole number of 0 or more, not {size!r}")
    topology = _environment("HIPRESS_TOPOLOGY", default="ps")
    where = _environment("HIPRESS_ENCODE_ON", default="host")
    entropy = _environment("HIPRESS_ENTROPY", default="0")
    settings = Settings(type, params, topology, int(size), encode_on=where, entropy=entropy)
    settings.refuse_auto()
    settings.refuse_low_rank("an all-reduce")
    if Compressor(type, **settings.params).state_names:
        raise ValueError(
            f"HIPRESS_COMPRESSION is {type}, which keeps a residual of each gradient, but an "
            "all-reduce does not say whose gradient it is: take a codec without (maxmin, "
            "terngrad, natural, fp16, bf16, lossless), or hipress.torch.compress(model, ...)"
        )
    return settings


class HipressProcessGroup(dist.ProcessGroup):
    """A process group whose large all-reduces are compressed."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._settings = settings_from_environment()
        self._timeout = timeout.total_seconds()
        below = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout)
        self._below = below
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, below)
        self._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self._synchronizers: dict[tuple[torch.device | None, bool], Synchronizer] = {}
        self._stats, self._counting = Stats(), threading.Lock()

    def getBackendName(self) -> str:  # overrides C++
        return "hipress"

    def allreduce(self, tensors, opts=None) -> dist.Work:
        """A compressed all-reduce, or Gloo's."""
        opts = opts or dist.AllreduceOptions()
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        average = opts.reduceOp == dist.ReduceOp.AVG
        why = self._uncompressed(tensors, opts.reduceOp.op)
        self._count("all-reduce", tensors, why)
        if why:
            if average:  # which Gloo does not have
                for tensor in tensors:
                    tensor.div_(self.size())
                opts.reduceOp = dist.ReduceOp.SUM
            return self._below.allreduce(tensors, opts)
        (tensor,) = tensors
        return self._compressed(tensor, average)

    def split_group(self, *args, **keywords) -> None:
        """Refuses PyTorch's own split_group, which would be Gloo's alone.

        :raises NotImplementedError: always
        """
        raise NotImplementedError(
            "a process group of 'hipress' cannot be split: make the parts by "
            "new_group(ranks, backend='hipress'), which all ranks call"
        )

    def _synchronizer(self, tensor: torch.Tensor, average: bool) -> Synchronizer:
        """The synchronizer of such tensors; all ranks ask for one of a kind together."""
        device = tensor.device if self._settings.encode_on == "device" else None
        if (device, average) not in self._synchronizers:
            group, about = self, []
            if device is not None:  # whose messages Gloo would carry through host memory
                check_type(device)  # before there is a group that none would use
                group, about = dist.new_group(
                    dist.get_process_group_ranks(self), timedelta(seconds=self._timeout),
                    "nccl" if device.type == "cuda" else "gloo", use_local_synchronization=True,
                ), [("tensor", tensor)]  # fmt: skip
            _, engine = start(lambda: self._settings, group, about, timeout=self._timeout)
            for means in (False, True):
                made = Synchronizer(self._settings, engine, group, (), average=means)
                self._synchronizers[device, means] = made
        return self._synchronizers[device, average]

    def stats(self) -> Stats:
        """Bytes of this rank's tensors that were reduced compressed and uncompressed, by kind and
        size of operation, and why."""
        with self._counting:
            return copy.deepcopy(self._stats)

    def _count(self, kind: str, tensors: Sequence[torch.Tensor], why: str) -> None:
        elements = sum(tensor.numel() for tensor in tensors)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        with self._counting:
            self._stats.count(f"{kind} of {elements} elements", size, why)

    def _uncompressed(self, tensors: Sequence[torch.Tensor], op: dist.ReduceOp.RedOpType) -> str:
        """The reason why an all-reduce is Gloo's; empty if it is compressed."""
        if self.size() == 1:
            return "of one rank alone"
        if len(tensors) != 1:
            return "of several tensors at once"
        (tensor,) = tensors
        if tensor.dtype not in FLAGS:
            return f"of {str(tensor.dtype).removeprefix('torch.')}"
        if tensor.device.type not in DEVICE_TYPES:
            return f"on {tensor.device.type}"
        if not tensor.is_contiguous():
            return "not contiguous"
        if tensor.numel() < max(self._settings.min_size, 1):
            return too_small(self._settings)
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            return f"by {op.name}"
        return ""

    def _compressed(self, tensor: torch.Tensor, average: bool) -> dist.Work:
        count, synchronizer = tensor.numel(), self._synchronizer(tensor, average)
        result = synchronizer.engine.staging(tensor.device).future()

        def finish(ready: torch.futures.Future) -> None:
            try:
                ready.value()
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result([tensor])

        future = synchronizer.synchronize(
            tensor.detach().view(-1), [Gradient(f"{count}", 0, count)],
            f"all-reduce of {count} elements",
        )  # fmt: skip
        future.add_done_callback(finish)
        return _create_work_from_future(result)


def _passes_on(name: str):
    def method(self: HipressProcessGroup, *args, **keywords):
        if name in _REDUCES:
            self._count(*_reduced(name, args), "of another kind than all_reduce()")
        if hasattr(self._below, name):
            return getattr(self._below, name)(*args, **keywords)
        return getattr(dist.ProcessGroup, name)(self, *args, **keywords)

    method.__name__ = name
    return method


# PyTorch does the same for a process group in Python that lacks these, but it holds Python's lock
# meanwhile, and waits for Gloo's. A thread of Gloo's has that one while it frees tensors, for which
# it waits for Python's.
_PASSED_ON = (
    "allgather", "allreduce_coalesced", "alltoall", "alltoall_base", "barrier", "broadcast",
    "reduce_scatter", "send", "recv",
)  # fmt: skip
_REDUCES = {
    "allreduce_coalesced": 0,
    "reduce": 0,
    "reduce_scatter": 1,
    "_reduce_scatter_base": 1,
    "reduce_scatter_single": 1,
    "reduce_scatter_single_coalesced": 1,
    "reduce_scatter_tensor_coalesced": 1,
}
"""Operations that reduce and are not compressed, by names of several versions of PyTorch, with the
number of the argument that is this rank's input."""


def _reduced(name: str, args: Sequence) -> tuple[str, list[torch.Tensor]]:
    """The kind of an operation, and its input."""
    nested, tensors = list(args[_REDUCES[name] : _REDUCES[name] + 1]), []
    while nested:
        one = nested.pop()
        if isinstance(one, torch.Tensor):
            tensors.append(one)
        else:
            nested.extend(one)
    return name.strip("_"), tensors


for _name in {*_PASSED_ON, *_REDUCES}:
    if hasattr(dist.ProcessGroup, _name):
        setattr(HipressProcessGroup, _name, _passes_on(_name))


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> HipressProcessGroup:
    _leave_uncompiled()
    return HipressProcessGroup(store, rank, size, timeout)


@functools.cache
def _leave_uncompiled() -> None:
    """torch.compile() would follow a compiled model's calls into these, which it cannot."""
    for name in ("allreduce", *_PASSED_ON, *_REDUCES):
        if hasattr(HipressProcessGroup, name):
            method = torch.compiler.disable(getattr(HipressProcessGroup, name))
            setattr(HipressProcessGroup, name, method)


def register() -> None:
    """Makes "hipress" a name for init_process_group and new_group."""
    if "hipress" not in dist.Backend.backend_list:
        dist.Backend.register_backend("hipress", _create, devices=["cpu", "cuda"])
