"""Weights of FSDP2's modules, gathered by the native engine.

FSDP2 gathers the weights of a module before its forward pass, and again before its backward pass.
Four modes replace PyTorch's all-gather by ours:

``exact``
    The weights, unmodified.
``lossless``
    The same bits, sent by the codec ``lossless``, which makes bfloat16 shorter than float32.
``blocks``
    The weights in blocks of 1,024, with ``bits`` bits each (ZeRO++'s qwZ, Wang et al. 2023). All
    ranks compute with the decoded weights. What the codec leaves out is lost in each gather.
``differences``
    Every rank keeps a *replica* of all weights in host memory. The owner of a part sends
    codec(weight - replica), and all ranks, the owner too, add what they decode (SDP4Bit, Jia et al.
    2024)::

        owner      weights --(-)--> difference --> codec --+--> other ranks
                             ^                             |
                             `----- replica <--(+)---------'   the same on every rank

    All ranks compute with the replica, whose bits are the same on all ranks, while the owner's
    optimizer keeps exact weights. What a payload leaves out is in the next difference, so there is
    no residual. Weights travel once after each reduction of their gradients: the gather before the
    backward pass reads the replica. The first exchange, and the first one after
    ``load_state_dict()``, is exact. So is one of weights that were changed without gradients:
    frozen weights travel once. The replica needs as much host memory as the whole model in the
    dtype of its gathers.

    Code that changes weights in another way must be seen on all ranks alike. Their versions show
    most of it. What these do not show (``p.data.copy_()``) is found by a sum of their bits, and
    ends the job with an error that names :meth:`WeightGathers.forget`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from hipress.errors import HipressError
from hipress.runtime.engine import Bucket
from hipress.runtime.error_feedback import Codecs, ErrorFeedback
from hipress.topology.all_gather import all_gather
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.private import backward_pass, lookup
from hipress.torch.private_fsdp import AllGather as FsdpAllGather
from hipress.torch.private_fsdp import Part, gathered_as, is_in, managed

MODES = {"exact": None, "lossless": None, "blocks": 8, "differences": 4}
"""Default bits of a weight, by mode."""
_framework_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_AHEAD = 2
"""Modules whose weights travel before they are needed. Each needs a buffer of its size."""


def check_gather(
    gather: str | None, bits: int | None, parameters: Sequence[DTensor], replicated: bool
) -> None:
    """Check the arguments ``gather`` and ``gather_bits`` of compress_fsdp().

    Args:
        gather: the mode; None: PyTorch's own all-gather
        bits: bits of a weight; None: the mode's default
        parameters: all parameters of the model that are sharded
        replicated: whether the model is sharded inside each host only

    Raises:
        ValueError: if they are wrong, do not fit the model, or there is too little memory
    """
    if gather is not None and gather not in MODES:
        raise ValueError(f"gather must be one of {', '.join(MODES)}, not {gather!r}")
    if bits is not None and MODES.get(gather or "exact") is None:
        raise ValueError(f"gather={gather!r} has no gather_bits")
    if bits is not None and bits not in range(1, 9):
        raise ValueError(f"gather_bits must be from 1 to 8, not {bits!r}")
    if gather is None:
        return
    if replicated:
        raise ValueError(
            "gather is for a model sharded between hosts; every host has all shards of this one, "
            "and its weights do not leave the host: leave gather out"
        )
    if parameters[0].device.type != "cpu":
        raise ValueError("gather needs a model in host memory: leave it out on GPUs")
    if gather == "differences":
        needed, available = replica_bytes(parameters), _available_bytes()
        if needed > available:
            raise ValueError(
                f'gather="differences" needs {needed / 1e9:.1f} GB for this rank\'s replica of all '
                f"weights, and its share of the available memory is {available / 1e9:.1f} GB: use "
                'gather="blocks"'
            )


def replica_bytes(parameters: Sequence[DTensor]) -> int:
    """Return the bytes of a replica of parameters, if weights are gathered in their own dtype."""
    return sum(p.numel() * p.element_size() for p in parameters)


def _available_bytes() -> float:
    """Return the bytes of memory that this host can give to each of its ranks."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(value.split()[0]) / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return math.inf


class WeightGathers:
    """Gathers of a model's weights.

    Args:
        group: process group of the mesh, whose ranks are the engine's
        mode: see the module's docstring
        bits: bits of a weight; default: 8 in blocks, 4 of differences
    """

    def __init__(
        self,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        mode: str,
        bits: int | None = None,
    ) -> None:
        self.engine, self.group, self.mode = engine, group, mode
        bits = bits or MODES[mode]
        params = {"bits": bits, "stochastic": 0} if bits else {}
        codec = "maxmin" if bits else "lossless" if mode == "lossless" else "none"
        self.codecs = Codecs(codec, params, average=False)
        self._modules: dict[str, _ModuleGather] = {}
        self._order: list[_ModuleGather] = []
        """Modules in the order of their first gathers."""
        self._buffers: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}
        self._borrowed = 0
        self.exchanges = 0
        """Exchanges of a module's weights so far."""

    @property
    def replica_bytes(self) -> int:
        """Host memory of the replica of all modules whose weights were gathered."""
        return sum(gather.replica_bytes for gather in self._modules.values())

    def attach(self, model: FSDPModule, modules: Mapping[str, Part]) -> None:
        """Use this for all gathers of a model's modules."""
        for name, module in modules.items():
            if managed(module):
                self._modules[name] = _ModuleGather(name, module, self)
                module.set_custom_all_gather(self._modules[name])
        model.register_load_state_dict_post_hook(lambda *_: self.forget())

    def forget(self) -> None:
        """Send all weights exactly in the next gathers. All ranks call this together.

        It is needed after weights were changed otherwise than by an optimizer or
        ``load_state_dict()``.
        """
        for gather in self._modules.values():
            gather.known = False

    def gradients_reduced(self, module: str) -> None:
        """Expect other weights in the next gather of a module."""
        if module in self._modules:
            self._modules[module].gradients_reduced()

    def announce(self, gather: _ModuleGather) -> None:
        """Start the exchanges of the modules that will be needed after this one."""
        if gather not in self._order:
            self._order.append(gather)
            return
        after = self._order.index(gather) + 1
        for later in self._order[after : after + _AHEAD]:
            later.start_early()

    def borrow(self, size: int, dtype: torch.dtype) -> torch.Tensor:
        """Return a buffer of ``size`` elements, to be given back."""
        free = self._buffers.setdefault((size, dtype), [])
        self._borrowed += 1
        with torch.inference_mode(False):
            return free.pop() if free else torch.empty(size, dtype=dtype)

    def give_back(self, buffer: torch.Tensor) -> None:
        """Keep a buffer for the next exchange of a module of this size.

        All buffers are freed when no exchange is running, before the backward pass needs memory.
        """
        self._borrowed -= 1
        self._buffers[buffer.numel(), buffer.dtype].append(buffer)
        if not self._borrowed:
            self._buffers.clear()


class _Exchange(NamedTuple):
    """Running exchange of some of a module's weights, or of their differences."""

    buffers: list[tuple[_Section, torch.Tensor]]
    futures: list[Future[None]]


class _GatherWork(dist.Work):
    """Handle of a running gather, on which FSDP waits before it uses the weights."""

    def __init__(self, finish: Callable[[], object]) -> None:
        super().__init__()
        self._finish: Callable[[], object] | None = finish

    def wait(self, timeout: object = None) -> bool:
        """Wait until the weights are in the tensor that FSDP got."""
        finish, self._finish = self._finish, None
        if finish:
            finish()
        return True


class _Section:
    """Weights of one dtype in a module's flat tensor, which has a row of bytes for each rank.

    Args:
        dtype: dtype in which the weights travel
        pieces: first byte and end of each piece in a row
        exact: whether the weights are sent unmodified
    """

    def __init__(
        self, dtype: torch.dtype, pieces: Sequence[tuple[int, int]], exact: bool = False
    ) -> None:
        self.dtype, self.exact = dtype, exact
        self.pieces: list[tuple[int, int]] = []
        for begin, end in pieces:
            adjoins = self.pieces and self.pieces[-1][1] == begin
            self.pieces.append((self.pieces.pop()[0] if adjoins else begin, end))
        self.count = sum(end - begin for begin, end in pieces) // dtype.itemsize
        """Elements in a row."""

    def covers(self, row_bytes: int) -> bool:
        """Return whether rows of so many bytes have no other weights."""
        return self.pieces == [(0, row_bytes)]

    def read(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the weights in rows of bytes as a matrix, which may share their memory."""
        found = [rows[:, begin:end] for begin, end in self.pieces]
        values, size = found[0] if len(found) == 1 else torch.cat(found, 1), self.dtype.itemsize
        if values.storage_offset() % size or values.stride(0) % size:
            values = values.clone(memory_format=torch.contiguous_format)
        return values.view(self.dtype)

    def write(self, rows: torch.Tensor, weights: torch.Tensor) -> None:
        """Replace the weights in rows of bytes by those in a matrix."""
        values, at = weights.view(torch.uint8), 0
        for begin, end in self.pieces:
            rows[:, begin:end].copy_(values[:, at : at + end - begin])
            at += end - begin

    def add(self, rows: torch.Tensor, differences: torch.Tensor) -> None:
        """Add a matrix to the weights in rows of bytes."""
        weights = self.read(rows)
        weights.add_(differences)
        if weights.untyped_storage().data_ptr() != rows.untyped_storage().data_ptr():
            self.write(rows, weights)


class _ModuleGather(FsdpAllGather):
    """All-gather of one FSDP2 module's weights."""

    def __init__(self, name: str, module: Part, gathers: WeightGathers) -> None:
        self.what = f"weights of module {name!r}" if name else "weights of the root module"
        self._records, self._gathers = managed(module), gathers
        self._buckets: dict[tuple, Bucket] = {}
        self._sections: dict[tuple, list[_Section]] = {}
        """Sections of some records, by their indexes."""
        self._replica: torch.Tensor | None = None
        self._saved: torch.Tensor | None = None
        """This rank's part of the replica during a gather, when FSDP writes exact weights there."""
        self._exchange: _Exchange | None = None
        self._versions: list[tuple[int, int]] = []
        self._bits: list[int] = []
        """Versions, and sums of the bits, of this rank's weights in the last exchange."""
        self.known = False
        """Whether the replica is close to the weights, so that differences are small."""
        self._reduced: set[int] = set()
        """Indexes of records whose gradients were reduced since the last exchange."""

    @property
    def replica_bytes(self) -> int:
        """Host memory of this module's replica."""
        return 0 if self._replica is None else self._replica.nbytes

    def gradients_reduced(self) -> None:
        """Expect other weights in the next gather."""
        self._reduced.update(i for i, p in enumerate(self._parameters()) if p.requires_grad)

    # FSDP's interface.

    def allocate(
        self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """Return the tensor in which FSDP gets the weights: the replica, if there is one."""
        (count,) = size
        world_size = self._gathers.engine.world_size
        odd = count * dtype.itemsize % (2 * world_size)
        if self._gathers.mode != "differences" or device.type != "cpu" or odd:
            return torch.empty(count, dtype=dtype, device=device)
        if any(is_in(record, "SHARDED_POST_FORWARD") for record in self._records):
            return torch.empty(count, dtype=dtype, device=device)  # for reshard_after_forward=N
        if self._replica is None or (self._replica.numel(), self._replica.dtype) != (count, dtype):
            self._finish_exchange()
            with torch.inference_mode(False):
                self._replica, self.known = torch.zeros(count, dtype=dtype), False
            self._sections.clear()
            self._buckets.clear()
        self._saved = self._part(self._replica).clone()
        return self._replica

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        """Gather the weights; FSDP waits on the result, if there is one, before it uses them."""
        gathers = self._gathers
        other = group.group_name != gathers.group.group_name  # reshard_after_forward=N
        if other or input_tensor.nbytes % 2 or output_tensor.device.type != "cpu":
            return _framework_gather(output_tensor, input_tensor, group=group, async_op=async_op)
        if gathers.mode != "differences":
            sections = self._sections_of(range(len(self._records)), input_tensor.nbytes)
            exchange = self._start(input_tensor, sections, output_tensor)
            return _GatherWork(lambda: self._fill(exchange, output_tensor))
        saved, self._saved = self._saved, None
        changed = self._changed()
        if self._must_be_exact(changed, input_tensor.nbytes):
            self._finish_exchange()
            self._note(input_tensor)
            exchange = self._start(input_tensor, [_whole_row(input_tensor.nbytes)], output_tensor)
            return _GatherWork(lambda: self._keep(exchange))
        if self._exchange is None and not changed:
            if backward_pass() < 0:  # otherwise the forward pass has checked it
                self._check_unchanged(input_tensor, changed)
            input_tensor.copy_(saved)
            return None
        weights = input_tensor.clone() if changed else input_tensor
        input_tensor.copy_(saved)
        if changed:
            self._finish_exchange()  # of weights before the last change
            self._start_differences(weights, changed)
        gathers.announce(self)
        return _GatherWork(self._finish_exchange)

    # Differences.

    def start_early(self) -> None:
        """Start an exchange before FSDP requests it, if weights have changed."""
        sharded = all(is_in(record, "SHARDED") for record in self._records)
        if self._exchange is not None or not sharded:
            return
        changed = self._changed()
        if changed and not self._must_be_exact(changed, self._part(self._replica).nbytes):
            inputs = (t for each in self._records for t in lookup(each, "all_gather_inputs"))
            with torch.no_grad():
                flat = torch.cat([each.view(-1).view(torch.uint8) for each in inputs])
                self._start_differences(flat, changed)

    def _parameters(self) -> list[DTensor]:
        return [each.sharded_param for each in self._records]

    def _changed(self) -> list[int]:
        """Return the indexes of the weights to exchange, which are the same on all ranks."""
        now = self._current_versions()
        return [
            i
            for i, version in enumerate(now)
            if i in self._reduced or not self.known or version != self._versions[i]
        ]

    def _must_be_exact(self, changed: Sequence[int], row_bytes: int) -> bool:
        """Return whether a difference to the replica is not enough.

        Weights that were changed without gradients, such as frozen ones, may never change again.
        What a payload leaves out would stay in the replica.
        """
        return (
            not self.known
            or not self._reduced.issuperset(changed)
            or any(section.exact for section in self._sections_of(changed, row_bytes))
        )

    def _note(self, weights: torch.Tensor) -> None:
        self._versions, self._bits = self._current_versions(), self._sums_of_bits(weights)
        self._reduced.clear()

    def _check_unchanged(self, weights: torch.Tensor, changed: Sequence[int]) -> None:
        """Check that the weights that will not be sent are those of the last exchange."""
        sums = self._sums_of_bits(weights)
        if any(sums[i] != self._bits[i] for i in range(len(sums)) if i not in changed):
            raise self._gathers.engine.fail(
                HipressError(
                    f"the {self.what} were changed otherwise than by an optimizer or "
                    "load_state_dict(): call gathers.forget() of the compression on all ranks "
                    "after such changes"
                ),
                self.what,
            )

    def _start_differences(self, weights: torch.Tensor, changed: Sequence[int]) -> None:
        """Send the differences between this rank's weights and its part of the replica."""
        self._check_unchanged(weights, changed)
        self._note(weights)
        sections = self._sections_of(changed, weights.nbytes)
        self._exchange = self._start(weights, sections, minus=self._part(self._replica))

    def _finish_exchange(self) -> None:
        """Wait for the running exchange, and add its result to the replica."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        for future in exchange.futures:
            future.result()
        for section, buffer in exchange.buffers:
            section.add(self._rows(self._replica), self._rows(buffer).view(section.dtype))
            self._gathers.give_back(buffer)

    def _keep(self, exchange: _Exchange) -> None:
        """Wait for an exact exchange, which has filled the replica."""
        self._fill(exchange, self._replica)
        self.known = True
        self._gathers.announce(self)

    def _sums_of_bits(self, weights: torch.Tensor) -> list[int]:
        """Return a number for each record that nearly every change of its weights changes."""
        row = weights.view(torch.uint8).numpy()
        return [_sum_of_bytes(row[begin:end]) for _, begin, end in self._layout(row.size)]

    def _current_versions(self) -> list[tuple[int, int]]:
        """Return values that change when most operations change the weights.

        Operations on a DTensor change its version, and those on its local tensor that one's.
        PyTorch's fused optimizers change neither.
        """
        return [(p._version, p.to_local()._version) for p in self._parameters()]

    # All modes.

    def _sections_of(self, records: Sequence[int], row_bytes: int) -> list[_Section]:
        """Return the sections in which some records travel, in rows of so many bytes."""
        key = tuple(records), row_bytes
        if key not in self._sections:
            pieces: dict[torch.dtype, list[tuple[int, int]]] = {}
            for i in records:
                dtype, begin, end = self._layout(row_bytes)[i]
                pieces.setdefault(dtype, []).append((begin, end))
            if self._gathers.mode != "exact" and all(dtype in FLAGS for dtype in pieces):
                self._sections[key] = [_Section(dtype, found) for dtype, found in pieces.items()]
            else:
                self._sections[key] = [_whole_row(row_bytes)]
        return self._sections[key]

    def _layout(self, row_bytes: int) -> list[tuple[torch.dtype, int, int]]:
        """Return dtype, first byte and end of each record in a row."""
        found, at = [], 0
        for dtype, count in map(gathered_as, self._records):
            found.append((dtype, at, at + count * dtype.itemsize))
            at = found[-1][2]
        if at == row_bytes:
            return found
        # Tensor subclasses with fsdp_pre_all_gather() may send anything.
        return [(torch.uint8, 0, row_bytes) for _ in found]

    def _rows(self, flat: torch.Tensor) -> torch.Tensor:
        """Return a flat tensor's bytes, with a row for each rank."""
        return flat.view(torch.uint8).view(self._gathers.engine.world_size, -1)

    def _part(self, flat: torch.Tensor) -> torch.Tensor:
        """Return this rank's part of a flat tensor."""
        return flat.view(self._gathers.engine.world_size, -1)[self._gathers.engine.rank]

    def _start(
        self,
        weights: torch.Tensor,
        sections: Sequence[_Section],
        output: torch.Tensor | None = None,
        minus: torch.Tensor | None = None,
    ) -> _Exchange:
        """Start to send this rank's weights to all ranks.

        Args:
            weights: row of this rank
            sections: what is sent
            output: flat tensor of all rows, which has ``weights`` and gets a section that is all
                of it in place
            minus: weights to subtract
        """
        gathers, exchange = self._gathers, _Exchange([], [])
        gathers.exchanges += 1
        row = weights.view(torch.uint8)[None]
        for section in sections:
            if output is not None and section.covers(row.numel()):
                buffer = output.view(section.dtype)
            else:
                buffer = gathers.borrow(section.count * gathers.engine.world_size, section.dtype)
                part, values = self._part(buffer), section.read(row)[0]
                if minus is None:
                    part.copy_(values)
                else:
                    torch.sub(values, section.read(minus.view(torch.uint8)[None])[0], out=part)
                exchange.buffers.append((section, buffer))
            exchange.futures.append(self._begin(section, buffer))
        return exchange

    def _fill(self, exchange: _Exchange, output: torch.Tensor) -> None:
        """Wait for an exchange of weights, and write what was not received in place."""
        for future in exchange.futures:
            future.result()
        for section, buffer in exchange.buffers:
            section.write(self._rows(output), self._rows(buffer).view(section.dtype))
            self._gathers.give_back(buffer)

    def _begin(self, section: _Section, flat: torch.Tensor) -> Future[None]:
        """Start to replace all parts of ``flat`` by the decoded payloads of their owners."""
        key = section.dtype, section.exact, tuple(section.pieces)
        if key not in self._buckets:
            self._buckets[key] = self._bucket(section, flat.numel())
        return self._buckets[key].begin(flat.data_ptr(), 0, self.what)

    def _bucket(self, section: _Section, count: int) -> Bucket:
        """Make the bucket of one key, on all ranks together."""
        engine, dtype = self._gathers.engine, FLAGS[section.dtype]
        graph = all_gather(count // engine.world_size, engine.world_size, plain=section.exact)
        stateless = ErrorFeedback(self._gathers.codecs, engine.rank, engine.world_size)
        about = f"{self._gathers.mode} {section.dtype} {section.pieces}"
        key = engine.add_key(self.what, graph, dtype, about, stateless)
        return Bucket(engine, dtype, [(0, count)], [(key, 0)], checked=False, own_keys=[key])


def _sum_of_bytes(values: np.ndarray) -> int:
    """Return the sum of 8 bytes at a time, wherever they begin in memory."""
    whole = values.size // 8 * 8
    return int(values[:whole].view(np.uint64).sum()) + int(values[whole:].sum())


def _whole_row(row_bytes: int) -> _Section:
    """Return the section that sends any weights unmodified."""
    dtype = torch.bfloat16 if row_bytes % 4 else torch.float32
    return _Section(dtype, [(0, row_bytes)], exact=True)
