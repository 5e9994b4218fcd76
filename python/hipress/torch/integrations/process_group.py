"""Process group backend "hipress": Gloo with compressed all-reduces.

>>> import hipress.torch  # not needed with PyTorch 2.14 and later
>>> torch.distributed.init_process_group("hipress")

With "cpu:hipress,cuda:nccl" NCCL runs all operations on GPUs, uncompressed.

All-reduces (sum, average) of floating tensors of at least HIPRESS_MIN_SIZE elements are compressed,
over HiPress's own connections. All other operations are Gloo's. ``group.stats()`` reports how much
of the reduced data was compressed, and why.

An all-reduce does not identify its gradient, so no residual can be kept for the next one, and the
codec must not use one. Settings are in the environment, the same on all ranks:

- HIPRESS_COMPRESSION: maxmin (default), terngrad, natural, fp16, bf16, lossless
- HIPRESS_BITS, HIPRESS_BUCKET_SIZE (or QNCCL's names BITS and bucket_size): of maxmin
- HIPRESS_ENTROPY: 0 (default), or 1: an entropy coder after the codec
- HIPRESS_TOPOLOGY: ps (default), or another topology's name
- HIPRESS_MIN_SIZE: default 16384
- HIPRESS_ENCODE_ON: host (default), or device: tensors on a GPU are encoded there, and their
  messages travel over NCCL. All tensors that large must then be on a GPU
"""

from __future__ import annotations

import copy
import functools
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from hipress.compression.compressor import Compressor
from hipress.torch.dtypes import DEVICE_TYPES, FLAGS
from hipress.torch.executors.cuda.device import check_type
from hipress.torch.gradient import Gradient
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start
from hipress.torch.stats import Stats, too_small
from hipress.torch.synchronizer import Synchronizer


def settings_from_environment() -> Settings:
    """Read the settings from the environment's variables."""

    def read(name: str, default: str, other: str = "") -> str:
        return os.environ.get(name) or os.environ.get(other) or default

    type, params = read("HIPRESS_COMPRESSION", "maxmin"), {}
    if type == "maxmin":
        params = {
            "bits": read("HIPRESS_BITS", "4", "BITS"),
            "bucket": read("HIPRESS_BUCKET_SIZE", "1024", "bucket_size"),
        }
    size = read("HIPRESS_MIN_SIZE", str(MIN_SIZE))
    if not size.isdigit():
        raise ValueError(f"HIPRESS_MIN_SIZE must be a whole number of 0 or more, not {size!r}")
    settings = Settings(
        type,
        params,
        read("HIPRESS_TOPOLOGY", "ps"),
        int(size),
        encode_on=read("HIPRESS_ENCODE_ON", "host"),
        entropy=read("HIPRESS_ENTROPY", "0"),
    )
    settings.refuse_auto()
    settings.refuse_low_rank("an all-reduce")
    if Compressor(settings.type, **settings.params).state_names:
        raise ValueError(
            f"HIPRESS_COMPRESSION is {settings.type}, which keeps a residual of each gradient, but "
            "an all-reduce does not name its gradient: use a codec without a residual (maxmin, "
            "terngrad, natural, fp16, bf16, lossless), or hipress.torch.compress(model, ...)"
        )
    return settings


class FutureWork(dist.Work):
    """Handle of an operation that a future completes, like Gloo's, also with ``wait(timeout)``."""

    def __init__(self, future: torch.futures.Future, timeout: timedelta | None = None) -> None:
        super().__init__()
        self._future = future
        self._timeout = timeout

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is done, and raise its error if it failed.

        After a timeout the operation continues, and this may be called again.
        """
        timeout = timeout or self._timeout  # C++ passes a timedelta of 0 for "no limit"
        if timeout:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            if not done.wait(timeout.total_seconds()):
                raise RuntimeError("Operation timed out!")
        self._future.wait()
        return True

    def synchronize(self) -> None:
        """Wait until the operation is done."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the operation is done or has failed."""
        return self._future.done()

    def is_success(self) -> bool:
        """Return whether the operation has not failed so far."""
        return self.exception() is None

    def exception(self) -> Exception | None:
        """Return the operation's error, or None if it has not failed so far."""
        if self._future.done():
            try:
                self._future.value()
            except Exception as error:
                return error
        return None

    def result(self) -> list[torch.Tensor]:
        """Return the result tensors."""
        if not self._future.done():
            raise RuntimeError(
                "Work needs to be completed before calling result(). "
                "Should call wait() before result()."
            )
        return self._future.value()

    def source_rank(self) -> int:
        """Raise an error, because only a receive has a source rank."""
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or "
            "recv-from-any call."
        )

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """Return the future that completes the operation."""
        return self._future


class _Probe(dist.ProcessGroup):
    """A process group whose all-reduce is done at once."""

    def allreduce(self, tensors, opts=None) -> dist.Work:
        future = torch.futures.Future()
        future.set_result(tensors)
        return FutureWork(future)


@functools.cache
def _outlives_its_python_object() -> bool:
    """Return whether C++ can use a handle made in Python after Python drops it.

    DDP calls the process group from C++. PyTorch 2.6 keeps only the C++ part of a handle, which
    has no future.
    """
    work = dist.ProcessGroup.allreduce(_Probe(0, 1), [torch.zeros(1)], dist.AllreduceOptions())
    try:
        work.get_future()
    except RuntimeError:
        return False
    return True


def work_of(future: torch.futures.Future, timeout: timedelta | None = None) -> dist.Work:
    """Return a handle of an operation that a future completes: PyTorch's own if it is too old."""
    if _outlives_its_python_object():
        return FutureWork(future, timeout)
    return _create_work_from_future(future)


class HipressProcessGroup(dist.ProcessGroup):
    """Process group whose large all-reduces are compressed.

    All other operations run on an inner process group of Gloo. They must not fall through to the
    methods of this class's base: PyTorch calls these through C++ overrides that hold Python's lock
    while they wait for Gloo's lock. A thread of Gloo holds Gloo's lock while it frees tensors, for
    which it needs Python's lock, so the process would deadlock. `_passed_on` derives the operations
    from the installed PyTorch, because its versions override different ones.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._settings = settings_from_environment()
        self._timeout = timeout.total_seconds()
        self._store, self._nccl_devices = store, None
        store = dist.PrefixStore("gloo", store)
        backend = dist.ProcessGroupGloo(store, rank, size, timeout)
        self._gloo = dist.ProcessGroup(store, rank, size)
        for group in (self, self._gloo):
            for device in ("cpu", "cuda"):
                type = dist.ProcessGroup.BackendType.GLOO
                group._register_backend(torch.device(device), type, backend)
            group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        self._synchronizers: dict[tuple[torch.device | None, bool], Synchronizer] = {}
        self._stats, self._counting = Stats(), threading.Lock()
        self._pending: set[torch.futures.Future] = set()
        """Futures of compressed all-reduces that are not done."""

    def getBackendName(self) -> str:  # overrides C++
        """Return the backend's name."""
        return "hipress"

    def allreduce(
        self,
        tensors: torch.Tensor | list[torch.Tensor],
        opts: dist.AllreduceOptions | dist.ReduceOp | dist.ReduceOp.RedOpType | None = None,
        timeout: timedelta | None = None,
        *,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType | None = None,
    ) -> dist.Work:
        """Start an all-reduce, compressed or by Gloo.

        The arguments are those of all three overloads of PyTorch's method.
        """
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if not isinstance(opts, dist.AllreduceOptions):
            op = dist.ReduceOp.SUM if op is None and opts is None else op or opts
            opts = dist.AllreduceOptions()
            opts.reduceOp = dist.ReduceOp(op) if isinstance(op, dist.ReduceOp.RedOpType) else op
            if timeout is not None:
                opts.timeout = timeout
        average = opts.reduceOp == dist.ReduceOp.AVG
        why = self._uncompressed(tensors, opts.reduceOp.op)
        self._count("all-reduce", tensors, why)
        if not why:
            return self._compressed(*tensors, average, opts.timeout)
        if average and not self._is_nccls(tensors):
            return self._average(tensors, opts)
        return self._inner().allreduce(tensors, opts)

    def barrier(self, *args, **keywords) -> dist.Work:
        """Start a barrier, after this rank's compressed all-reduces are done.

        Gloo's barrier also waits for earlier operations, but only for Gloo's own.
        """
        for future in tuple(self._pending):
            future.wait()
        return self._inner().barrier(*args, **keywords)

    def _inner(self) -> dist.ProcessGroup:
        """Return the process group of all uncompressed operations.

        Its backend is Gloo. If this group was made as "cpu:hipress,cuda:nccl", NCCL is its backend
        on GPUs. PyTorch does not pass that name to a process group's constructor, and does not make
        the other backend, so this happens in the first operation.

        Raises:
            ValueError: if the name has another backend than "hipress", "gloo" or "nccl"
        """
        if self._nccl_devices is None:
            parts = dist.get_backend_config(self).split(",")
            named = dict(part.split(":") for part in parts if ":" in part)
            wrong = sorted(set(named.values()) - {"hipress", "gloo", "nccl"})
            if wrong:
                raise ValueError(
                    f"'hipress' cannot be combined with backend {wrong[0]!r}, only with 'nccl': "
                    "use 'cpu:hipress,cuda:nccl'"
                )
            devices = {device for device, backend in named.items() if backend == "nccl"}
            if devices and torch.cuda.is_available():
                self._add_nccl()
            self._nccl_devices = frozenset(devices)
        return self._gloo

    def _add_nccl(self) -> None:
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timedelta(seconds=self._timeout)
        store = dist.PrefixStore("nccl", self._store)
        backend = dist.ProcessGroupNCCL(store, self.rank(), self.size(), options)
        for group in (self, self._gloo):
            type = dist.ProcessGroup.BackendType.NCCL
            group._register_backend(torch.device("cuda"), type, backend)

    def _is_nccls(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether NCCL runs the operations on these tensors."""
        self._inner()
        return any(tensor.device.type in self._nccl_devices for tensor in tensors)

    def _synchronizer(self, tensor: torch.Tensor, average: bool) -> Synchronizer:
        """Return the synchronizer of such tensors. All ranks request one of a kind together."""
        device = tensor.device if self._settings.encode_on == "device" else None
        if (device, average) not in self._synchronizers:
            group, about = self, []
            if device is not None:  # Gloo would send its messages through host memory
                check_type(device)  # before an unused group is created
                group, about = (
                    dist.new_group(
                        dist.get_process_group_ranks(self),
                        timedelta(seconds=self._timeout),
                        "nccl" if device.type == "cuda" else "gloo",
                        use_local_synchronization=True,
                    ),
                    [("tensor", tensor)],
                )
            _, engine = start(lambda: self._settings, group, about, timeout=self._timeout)
            for means in (False, True):
                made = Synchronizer(self._settings, engine, group, (), average=means)
                self._synchronizers[device, means] = made
        return self._synchronizers[device, average]

    def stats(self) -> Stats:
        """Return the compressed and uncompressed bytes of this rank's tensors, with reasons.

        They are counted by kind and size of operation.
        """
        with self._counting:
            return copy.deepcopy(self._stats)

    def _count(self, kind: str, tensors: Sequence[torch.Tensor], why: str) -> None:
        elements = sum(tensor.numel() for tensor in tensors)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        with self._counting:
            self._stats.count(f"{kind} of {elements} elements", size, why)

    def _uncompressed(self, tensors: Sequence[torch.Tensor], op: dist.ReduceOp.RedOpType) -> str:
        """Return the reason why an all-reduce is Gloo's, or "" if it is compressed."""
        if self._is_nccls(tensors):
            return "on a device whose backend is nccl"
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

    def _compressed(self, tensor: torch.Tensor, average: bool, timeout: timedelta) -> dist.Work:
        count, synchronizer = tensor.numel(), self._synchronizer(tensor, average)
        result = synchronizer.engine.staging(tensor.device).future()

        def finish(ready: torch.futures.Future) -> None:
            try:
                ready.value()
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result([tensor])
            self._pending.discard(result)

        future = synchronizer.synchronize(
            tensor.detach().view(-1),
            [Gradient(f"{count}", 0, count)],
            f"all-reduce of {count} elements",
        )
        self._pending.add(result)
        future.add_done_callback(finish)
        return work_of(result, timeout if timeout > timedelta(0) else None)

    def _average(self, tensors: list[torch.Tensor], opts: dist.AllreduceOptions) -> dist.Work:
        """Start an average that Gloo sums up. Averages of integers are rounded toward zero.

        Gloo itself has no averages in PyTorch's older versions, and none of integers. Lightning
        therefore asks Gloo for sums, but it recognizes Gloo by its name, and asks every other
        backend for averages. NCCL also rounds averages of integers so.

        Floating and complex tensors are divided before the sum. This happens in the caller's
        thread, whose grad mode, inference mode and CUDA stream apply, and a sum of large float16
        numbers does not overflow. Integers would lose their remainders, so they are divided after
        the sum, in a thread of Gloo.
        """
        sums = dist.AllreduceOptions()
        sums.reduceOp, sums.timeout = dist.ReduceOp.SUM, opts.timeout
        # PyTorch cannot divide float8 tensors. Gloo refuses them with the same error as for a sum.
        if all((t.is_floating_point() or t.is_complex()) and t.itemsize > 1 for t in tensors):
            for tensor in tensors:
                tensor.div_(self.size())
            return self._gloo.allreduce(tensors, sums)

        def divide(ready: torch.futures.Future) -> list[torch.Tensor]:
            ready.value()
            with torch.inference_mode():  # the caller's tensors may be inference tensors
                for tensor in tensors:
                    tensor.div_(self.size(), rounding_mode="trunc")
            return tensors

        return work_of(self._gloo.allreduce(tensors, sums).get_future().then(divide))


def _refuses(sentence: str) -> Callable:
    """Return a method that is refused, because PyTorch's own would return a group of Gloo."""

    def method(self: HipressProcessGroup, *args, **keywords) -> None:
        raise NotImplementedError(f"a process group of 'hipress' cannot be {sentence}")

    return method


def _passed_on() -> list[str]:
    """Return the names of the installed PyTorch's operations that Gloo runs."""

    def returns_work(name: str) -> bool:
        signature = getattr(dist.ProcessGroup, name).__doc__ or ""
        return re.search(r"-> [\w.]*(::)?Work\b", signature) is not None

    names = set(filter(returns_work, dir(dist.ProcessGroup)))
    return sorted({*names, "monitored_barrier", "_start_coalescing"} - {"allreduce", "barrier"})


def _passes_on(name: str) -> Callable:
    def method(self: HipressProcessGroup, *args, **keywords):
        if "reduce" in name:
            self._count(*_reduced(name, args, keywords), "of another kind than all_reduce()")
        return getattr(self._inner(), name)(*args, **keywords)

    method.__name__ = name
    return method


def _reduced(name: str, args: Sequence, keywords: Mapping) -> tuple[str, list[torch.Tensor]]:
    """Return the kind of an operation that reduces, and this rank's input of it."""
    index = 1 if "reduce_scatter" in name else 0  # after the output
    nested, tensors = [[*args, *keywords.values()][index]], []
    while nested:
        one = nested.pop()
        if isinstance(one, torch.Tensor):
            tensors.append(one)
        else:
            nested.extend(one)
    return name.strip("_"), tensors


for _name in _passed_on():
    setattr(HipressProcessGroup, _name, _passes_on(_name))
HipressProcessGroup.recvAnysource = HipressProcessGroup.recv_anysource  # its name in C++
HipressProcessGroup.split_group = _refuses(
    "split: make the parts by new_group(ranks, backend='hipress'), which all ranks call"
)
HipressProcessGroup.merge_remote_group = _refuses(
    "merged with a remote one: start a job of all ranks"
)


@functools.cache
def _leave_uncompiled() -> None:
    """Exclude these methods from torch.compile(), which cannot compile them."""
    for name in ("allreduce", "barrier", *_passed_on()):
        method = torch.compiler.disable(getattr(HipressProcessGroup, name))
        setattr(HipressProcessGroup, name, method)


def register() -> None:
    """Register "hipress" as a name for init_process_group and new_group."""

    def create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> HipressProcessGroup:
        _leave_uncompiled()
        return HipressProcessGroup(store, rank, size, timeout)

    if "hipress" not in dist.Backend.backend_list:
        dist.Backend.register_backend("hipress", create, devices=["cpu", "cuda"])
