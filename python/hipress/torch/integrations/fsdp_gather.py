"""Weights of FSDP2's modules, gathered by the native engine.

FSDP2 gathers the weights of a module before its forward pass, and again before its backward pass.
The mode ``pytorch`` uses PyTorch's all-gather. Four modes replace it by ours:

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

The exchange runs in host memory. For a model on a GPU, this rank's weights are copied to
page-locked memory, and the gathered weights are copied to FSDP2's tensor, on two separate streams
(:mod:`hipress.torch.executors.weight_staging`). FSDP2's stream waits for the second copy, which
cannot be queued before the exchange ends. So the training thread waits for the network where FSDP2
needs the weights, while the GPU computes earlier modules. The replica is in page-locked memory,
from which the gather before the backward pass is one copy.

With ``encode_on="device"`` the GPU encodes, and messages travel from GPU to GPU in the mesh's
process group. The training thread waits for nothing. The replica is in the GPU's memory.

With ``auto`` the ranks measure the modes and choose one (:mod:`hipress.torch.autotune.gathers`),
for models in host memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from hipress.autotune.methods import Method
from hipress.autotune.steps import MEASURING
from hipress.config import AUTO
from hipress.errors import HipressError
from hipress.runtime.engine import Bucket
from hipress.runtime.error_feedback import OWN, PLAIN, Codecs, ErrorFeedback
from hipress.topology.all_gather import all_gather
from hipress.torch.autotune.gathers import (
    GatheredModule,
    GatherFrontend,
    GatherSample,
    GatherTuner,
    TunedGathers,
    choose_gather,
)
from hipress.torch.dtypes import FLAGS, NAMES, floats
from hipress.torch.executors.cuda.device import DEVICES, check_codec, check_type
from hipress.torch.executors.cuda.weights import Begin, EncodedWeights
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import Fetched
from hipress.torch.executors.weight_staging import HostWeights, weight_staging
from hipress.torch.private import backward_pass, lookup
from hipress.torch.private_fsdp import AllGather as FsdpAllGather
from hipress.torch.private_fsdp import (
    Part,
    gathered_as,
    gathers_again,
    has_own_all_gather,
    is_in,
    managed,
    will_gather,
)

PYTORCH = "pytorch"
MODES = {"exact": None, "lossless": None, "blocks": 8, "differences": 4}
"""Default bits of a weight, by mode."""
_framework_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_AHEAD = 2
"""Modules whose weights travel before they are needed. Each needs a buffer of its size."""


def check_gather(
    gather: str | None,
    bits: int | None,
    parameters: Sequence[DTensor],
    replicated: bool,
    encode_on: str = "host",
) -> None:
    """Check the arguments ``gather`` and ``gather_bits`` of compress_fsdp().

    Args:
        gather: the mode, or "auto"; None: PyTorch's own all-gather
        bits: bits of a weight; None: the mode's default
        parameters: all parameters of the model that are sharded
        replicated: whether the model is sharded inside each host only
        encode_on: where the weights are encoded, "host" or "device"

    Raises:
        ValueError: if they are wrong or do not fit the model
    """
    modes = (AUTO, PYTORCH, *MODES)
    if gather is not None and gather not in modes:
        raise ValueError(f"gather must be one of {', '.join(modes)}, not {gather!r}")
    if bits is not None and MODES.get(gather or "exact") is None:
        raise ValueError(f"gather={gather!r} has no gather_bits")
    if bits is not None and bits not in range(1, 9):
        raise ValueError(f"gather_bits must be from 1 to 8, not {bits!r}")
    if gather in (None, PYTORCH):
        return
    if replicated:
        raise ValueError(
            "gather is for a model sharded between hosts; every host has all shards of this one, "
            "and its weights do not leave the host: leave gather out"
        )
    device = parameters[0].device
    if encode_on == "device" and gather != AUTO:
        check_type(device)
        if gather != "exact":
            check_codec(device, _codecs(gather, bits).decoder(OWN).config)


def check_memory(needed: int, device: torch.device, encode_on: str = "host") -> None:
    """Check that this rank has the memory for its replica of all weights, ``needed`` bytes.

    Args:
        needed: bytes of the replicas of all process groups
        device: where the weights are
        encode_on: where they are encoded: with "device" on a GPU the replica is in its memory

    Raises:
        ValueError: if there is too little memory
    """
    on_gpu = encode_on == "device" and device.type == "cuda"
    available = torch.cuda.mem_get_info(device)[0] if on_gpu else available_bytes()
    if needed > available:
        raise ValueError(
            f'gather="differences" needs {needed / 1e9:.1f} GB for this rank\'s replica of all '
            f"weights, and its share of the available memory {'of the GPU ' if on_gpu else ''}"
            f'is {available / 1e9:.1f} GB: use gather="blocks"'
        )


def _codecs(mode: str, bits: int | None) -> Codecs:
    """Return the codec of a mode. ``bits`` are those of a weight, or None for the default."""
    bits = bits or MODES.get(mode)
    params = {"bits": bits, "stochastic": 0} if bits else {}
    codec = "maxmin" if bits else "lossless" if mode == "lossless" else "none"
    return Codecs(codec, params, average=False)


def why_not_chosen(modules: Iterable[Part], device: torch.device, replicated: bool) -> str:
    """Return why the gathers of a model cannot be chosen, or an empty string."""
    if replicated:
        return "they do not leave a host"
    if device.type != "cpu":
        return "gathers are measured in host memory only"
    for module in modules:
        if not hasattr(module, "set_custom_all_gather"):
            return f"PyTorch {torch.__version__} has no FSDPModule.set_custom_all_gather()"
        if managed(module) and has_own_all_gather(module):
            return "a module has an all-gather that the user has set"
    return ""


def replica_bytes(modules: Iterable[Part], ranks: int) -> int:
    """Return the bytes of a replica of what modules gather from so many ranks, with padding."""
    gathered = (will_gather(module, each) for module in modules for each in managed(module))
    return ranks * sum(dtype.itemsize * count for dtype, count in gathered)


def available_bytes() -> float:
    """Return the bytes of memory that this host can give to each of its ranks."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(value.split()[0]) / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return math.inf


class WeightGathers(TunedGathers):
    """Gathers of a model's weights.

    Args:
        group: process group of the mesh, whose ranks are the engine's
        mode: see the module's docstring
        bits: bits of a weight; default: 8 in blocks, 4 of differences
        encode_on: where the weights are encoded, "host" or "device"
    """

    tuner: GatherTuner | None = None
    """Tuner that changes the mode in training, with ``gather="auto"``."""

    def __init__(
        self,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        mode: str,
        bits: int | None = None,
        encode_on: str = "host",
    ) -> None:
        self.engine, self.group = engine, group
        self.mode, self.codecs = mode, _codecs(mode, bits)
        self._encode_on = encode_on
        self._modules: dict[str, _ModuleGather] = {}
        self._order: list[_ModuleGather] = []
        """Modules in the order of their first gathers."""
        self._buffers: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}
        self._borrowed = 0
        self._staging: HostWeights | None = None
        self.exchanges = 0
        """Exchanges of a module's weights so far."""
        self.bytes_sent = self.uncompressed_bytes = 0
        """Bytes that this rank has sent in gathers, and bytes of the same gathers uncompressed."""
        self.engine_bytes_sent = 0
        """Bytes that the engine has sent in gathers, also in measurements."""
        self._dtype = torch.float32
        """Dtype of the weights in measurements."""

    @property
    def replica_bytes(self) -> int:
        """Bytes of the replica of all modules whose weights were gathered."""
        return sum(gather.replica_bytes for gather in self._modules.values())

    def attach(self, model: FSDPModule, modules: Mapping[str, Part]) -> None:
        """Use this for all gathers of a model's modules."""
        for name, module in modules.items():
            if managed(module):
                what = f"weights of module {name!r}" if name else "weights of the root module"
                self._modules[name] = _ModuleGather(what, managed(module), self)
                module.set_custom_all_gather(self._modules[name])
        model.register_load_state_dict_post_hook(lambda *_: self.forget())

    def tune(
        self,
        model: FSDPModule,
        modules: Mapping[str, Part],
        replica: int,
        step: Callable[[], int],
        log_rank: int,
        may_round: bool = True,
    ) -> GatherTuner:
        """Choose the mode by measurements, and use it, on all ranks together.

        ``replica`` is the size of this rank's replica of all weights in bytes, also of the weights
        that other gathers of the model have. ``step`` returns the number of the step that begins.
        The rank with ``log_rank`` 0 writes the log in training. ``may_round`` is whether weights
        may be rounded.
        """
        counts = dict.fromkeys(FLAGS, 0)
        for module in modules.values():
            for dtype, count in (will_gather(module, each) for each in managed(module)):
                counts[dtype] = counts.get(dtype, 0) + count
        self._dtype = max(FLAGS, key=counts.get)
        ranks = self.engine.world_size
        gathered = [_gathered(n, module, ranks) for n, module in modules.items() if managed(module)]
        frontend = GatherFrontend(self, self.group, gathered, step, log_rank)
        self.tuner = choose_gather(frontend, replica, available_bytes(), may_round)
        if self.tuner.is_measured:
            self.use(self.tuner.method)
            self.attach(model, modules)
        return self.tuner

    def use(self, method: Method) -> None:
        """Gather by another method from now on, on all ranks between the same two gathers."""
        keeps_replica = method.type == self.mode == "differences"
        for gather in self._modules.values():
            gather.reset(keeps_replica)
        self._buffers = {}
        self.mode, self.codecs = method.type, _codecs(method.type, method.params.get("bits"))

    def sample(self, method: Method, sizes: Sequence[int]) -> GatherSample:
        """Return gathers of modules with so many elements each, on all ranks together."""
        return _Sample(self, method, sizes, self._dtype)

    def begin_step(self) -> None:
        """Begin a step, on all ranks together, between the gathers of two steps."""
        if self.tuner is not None:
            self.tuner.begin_step()

    def timer(self) -> Callable[[], None]:
        """Start to time a gather, and return a function that ends it."""
        return (lambda: None) if self.tuner is None else self.tuner.timer()

    def observe(self, rounded: torch.Tensor, weights: torch.Tensor) -> None:
        """Observe elements that are about to be rounded for a gather of ``weights``."""
        if self.tuner is not None:
            self.tuner.observe(rounded, weights)

    def count(self, sent: int, uncompressed: int, by_engine: bool = True) -> None:
        """Count the bytes that this rank sends to each other rank in an exchange."""
        others = self.engine.world_size - 1
        self.bytes_sent += others * sent
        self.uncompressed_bytes += others * uncompressed
        self.engine_bytes_sent += others * sent if by_engine else 0

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

    def staging(self, device: torch.device) -> HostWeights:
        """Return the memory in which weights are gathered. ``device`` is that of all weights."""
        if self._staging is None:
            if self._encode_on == "device":
                self._staging = EncodedWeights(DEVICES[device.type](device), self.group)
            else:
                self._staging = weight_staging(device)
        return self._staging

    def borrow(self, size: int, dtype: torch.dtype) -> torch.Tensor:
        """Return a buffer of ``size`` elements, to be given back."""
        free = self._buffers.setdefault((size, dtype), [])
        self._borrowed += 1
        with torch.inference_mode(False):
            return free.pop() if free else self._staging.buffer(size, dtype)

    def give_back(self, buffer: torch.Tensor) -> None:
        """Keep a buffer for the next exchange of a module of this size.

        All buffers in host memory are freed when no exchange is running, before the backward pass
        needs memory. A GPU may still have to read its buffers.
        """
        self._borrowed -= 1
        self._buffers[buffer.numel(), buffer.dtype].append(buffer)
        if not self._borrowed and buffer.device.type == "cpu":
            self._buffers.clear()


class _Exchange(NamedTuple):
    """Running exchange of some of a module's weights, or of their differences."""

    buffers: list[tuple[_Section, torch.Tensor]]
    """Memory of sections that are not received in place."""
    started: Future[list[Callable[[], object]]]
    """Functions that wait for each section, when this rank's weights are where it is gathered."""

    def wait(self) -> None:
        """Wait for all sections: the host, or the current stream for those that a GPU encodes."""
        for wait in self.started.result():
            wait()


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

    def __init__(self, what: str, records: Sequence[Any], gathers: WeightGathers) -> None:
        self.what, self._records, self._gathers = what, records, gathers
        self._begins: dict[tuple, Begin] = {}
        self._sections: dict[tuple, list[_Section]] = {}
        """Sections of some records, by their indexes."""
        self._replica: torch.Tensor | None = None
        self._saved: torch.Tensor | None = None
        """This rank's part of the replica during a gather, if FSDP writes exact weights there."""
        self._staging = HostWeights()
        self._sent: Any = None
        """Event of the last copy of the replica to the device."""
        self._exchange: _Exchange | None = None
        self._versions: list[tuple[int, int]] = []
        self._bits = torch.empty(0)
        """Versions, and sums of the bits, of this rank's weights in the last exchange."""
        self.known = False
        """Whether the replica is close to the weights, so that differences are small."""
        self._reduced: set[int] = set()
        """Indexes of records whose gradients were reduced since the last exchange."""

    @property
    def replica_bytes(self) -> int:
        """Bytes of this module's replica."""
        return 0 if self._replica is None else self._replica.nbytes

    def gradients_reduced(self) -> None:
        """Expect other weights in the next gather."""
        self._reduced.update(i for i, p in enumerate(self._parameters()) if p.requires_grad)

    # FSDP's interface.

    def allocate(
        self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """Return the tensor in which FSDP gets the weights: in host memory, a replica itself."""
        (count,) = size
        self._staging = self._gathers.staging(device)
        world_size = self._gathers.engine.world_size
        odd = count * dtype.itemsize % (2 * world_size)
        if self._gathers.mode != "differences" or odd:
            return torch.empty(count, dtype=dtype, device=device)
        if any(is_in(record, "SHARDED_POST_FORWARD") for record in self._records):
            return torch.empty(count, dtype=dtype, device=device)  # for reshard_after_forward=N
        if self._replica is None or (self._replica.numel(), self._replica.dtype) != (count, dtype):
            self._finish_exchange()
            with torch.inference_mode(False):
                self._replica, self.known = self._staging.replica(count, dtype), False
            self._sections.clear()
            self._begins.clear()
        if not self._staging.is_host:
            return torch.empty(count, dtype=dtype, device=device)
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
        if other or input_tensor.nbytes % 2:
            return _framework_gather(output_tensor, input_tensor, group=group, async_op=async_op)
        if gathers.mode == PYTORCH:
            return self._gather_by_pytorch(output_tensor, input_tensor, async_op)
        staging, row_bytes = self._staging, input_tensor.nbytes
        if gathers.mode != "differences":
            sections = self._sections_of(range(len(self._records)), row_bytes)
            begin = gathers.engine.rank * input_tensor.numel()
            fetched = staging.fetch(output_tensor, slice(begin, begin + input_tensor.numel()))
            flat = fetched.memory
            exchange = self._start(self._part(flat), sections, fetched, flat)
            return _GatherWork(lambda: self._fill_output(exchange, flat, fetched))
        self._raise_found()
        saved, self._saved = self._saved, None
        changed, weights = self._changed(), input_tensor
        must_be_exact = self._must_be_exact(changed, row_bytes)
        if self._exchange is None and not changed:
            if backward_pass() < 0:  # otherwise the forward pass has checked it
                self._check_unchanged(self._sums_of_bits(weights), changed)
            if saved is not None:
                input_tensor.copy_(saved)
            self._send(output_tensor, staging.mark())
            return None
        if saved is not None and not (must_be_exact and self._exchange is None):
            if changed:
                weights = input_tensor.clone()
            input_tensor.copy_(saved)
        if changed:
            self._finish_exchange()  # of weights before the last change
        if must_be_exact:
            self._note(self._sums_of_bits(weights))
            fetched, whole = staging.fetch(weights), [_whole_row(row_bytes)]
            exchange = self._start(fetched.memory, whole, fetched, self._replica)
            mark = staging.mark()
            return _GatherWork(lambda: self._keep(exchange, output_tensor, mark))
        if changed:
            self._start_differences(weights, changed)
        mark = staging.mark()  # after the reads of this rank's weights, which are in the output
        gathers.announce(self)

        def finish() -> None:
            self._finish_exchange()
            self._send(output_tensor, mark)

        return _GatherWork(finish)

    def _fill_output(self, exchange: _Exchange, flat: torch.Tensor, fetched: Fetched) -> None:
        """Wait for an exchange, and let the caller's stream wait for its result."""
        self._fill(exchange, flat)
        fetched.copy_back()
        self._staging.join()

    def _send(self, output: torch.Tensor, after: Any) -> None:
        """Let the caller's stream wait for the replica's weights in FSDP's tensor.

        Args:
            output: FSDP's tensor
            after: event after which it may be written
        """
        self._sent = self._staging.send(output, self._replica, after)
        self._staging.join()

    def _gather_by_pytorch(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, async_op: bool
    ) -> dist.Work | None:
        gathers, ended = self._gathers, self._gathers.timer()
        gathers.count(input_tensor.nbytes, input_tensor.nbytes, by_engine=False)
        work = _framework_gather(
            output_tensor, input_tensor, group=gathers.group, async_op=async_op
        )
        if work is None:
            ended()
            return None
        return _GatherWork(lambda: (work.wait(), ended()))

    def reset(self, keeps_replica: bool) -> None:
        """Prepare for another codec. Without the replica, the next exchange is exact."""
        self._finish_exchange()
        self._sections.clear()
        self._begins.clear()
        if not keeps_replica:
            self._replica = self._saved = None
            self.known = False

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
                parts = [each.view(-1).view(torch.uint8) for each in inputs]
                flat = self._staging.empty(sum(map(len, parts)), torch.uint8)
                self._staging.queue(lambda: torch.cat(parts, out=flat), [*parts, flat])
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

    def _note(self, sums: torch.Tensor) -> None:
        self._versions, self._bits = self._current_versions(), sums
        self._reduced.clear()

    def _check_unchanged(self, sums: torch.Tensor, changed: Sequence[int]) -> None:
        """Check that the weights that will not be sent are those of the last exchange.

        On a GPU, an error is raised in a later gather.
        """
        differs, known = self._staging.empty(len(sums), torch.bool), self._bits
        unchanged = sorted(set(range(len(sums))).difference(changed))

        def problem(numbers: torch.Tensor) -> str:
            if not any(numbers[i] for i in unchanged):
                return ""
            return (
                f"the {self.what} were changed otherwise than by an optimizer or "
                "load_state_dict(): call gathers.forget() of the compression on all ranks "
                "after such changes"
            )

        if unchanged:
            self._staging.queue(lambda: torch.ne(sums, known, out=differs), [sums, known, differs])
            self._staging.report(differs, problem)
            self._raise_found()

    def _raise_found(self) -> None:
        """Raise the error of a check of this model's weights, if one is known now."""
        if problem := self._staging.poll():
            raise self._gathers.engine.fail(HipressError(problem), "")

    def _start_differences(self, weights: torch.Tensor, changed: Sequence[int]) -> None:
        """Send the differences between this rank's weights and its part of the replica."""
        sums = self._sums_of_bits(weights)
        self._check_unchanged(sums, changed)
        self._note(sums)
        sections = self._sections_of(changed, weights.nbytes)
        fetched, own = self._staging.fetch(weights), self._part(self._replica)
        self._exchange = self._start(fetched.memory, sections, fetched, minus=own)

    def _await_copy(self) -> None:
        """Wait until the replica's last copy to the device has ended, so that it may change."""
        self._staging.wait(self._sent, self._gathers.engine.timeout)

    def _finish_exchange(self) -> None:
        """Wait for the running exchange, and add its result to the replica."""
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.wait()
        self._await_copy()
        for section, buffer in exchange.buffers:
            section.add(self._rows(self._replica), self._rows(buffer).view(section.dtype))
            self._gathers.give_back(buffer)

    def _keep(self, exchange: _Exchange, output: torch.Tensor, mark: Any) -> None:
        """Wait for an exact exchange, which has filled the replica."""
        self._fill(exchange, self._replica)
        self.known = True
        self._send(output, mark)
        self._gathers.announce(self)

    def _sums_of_bits(self, weights: torch.Tensor) -> torch.Tensor:
        """Return a number for each record that nearly every change of its weights changes."""
        row = weights.view(torch.uint8)
        return self._staging.sums(row, [(b, e) for _, b, e in self._layout(row.numel())])

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
        fetched: Fetched,
        output: torch.Tensor | None = None,
        minus: torch.Tensor | None = None,
    ) -> _Exchange:
        """Start to send this rank's weights to all ranks.

        Args:
            weights: row of this rank where weights are gathered
            sections: what is sent
            fetched: copy to host memory that ``weights`` wait for
            output: flat tensor of all rows, which gets a section that is all of it in place
            minus: weights to subtract
        """
        gathers, engine = self._gathers, self._gathers.engine
        exchange, begins = _Exchange([], Future()), []
        gathers.exchanges += 1
        by_engine = not isinstance(self._staging, EncodedWeights)
        row = weights.view(torch.uint8)[None]
        for section in sections:
            in_place = output is not None and section.covers(row.numel())
            if in_place:
                flat = output.view(section.dtype)
            else:
                flat = gathers.borrow(section.count * engine.world_size, section.dtype)
                exchange.buffers.append((section, flat))
            begins.append((section, flat, in_place, self._begin_of(section, flat)))
            gathers.count(self._payload_bytes(section, flat), self._part(flat).nbytes, by_engine)

        def launch() -> None:
            fetched.host(engine.timeout)
            if output is not None and self._part(output).data_ptr() != weights.data_ptr():
                self._await_copy()
                self._part(output).copy_(weights)
            waits = []
            for section, flat, in_place, begin in begins:
                part = self._part(flat)
                values = part if in_place else section.read(row)[0]
                if not in_place and minus is None:
                    part.copy_(values)
                elif not in_place:
                    torch.sub(values, section.read(minus.view(torch.uint8)[None])[0], out=part)
                if not section.exact:
                    gathers.observe(part, values)
                waits.append(begin(flat))
            if weights is fetched.memory:
                fetched.release()
            exchange.started.set_result(waits)

        def launch_later() -> None:
            try:
                launch()
            except Exception as error:
                exchange.started.set_exception(engine.fail(error, self.what))

        if self._staging.waits:
            engine.submit(launch_later)
        else:
            launch()
        return exchange

    def _fill(self, exchange: _Exchange, output: torch.Tensor) -> None:
        """Wait for an exchange of weights, and write what was not received in place."""
        exchange.wait()
        for section, buffer in exchange.buffers:
            section.write(self._rows(output), self._rows(buffer).view(section.dtype))
            self._gathers.give_back(buffer)

    def _begin_of(self, section: _Section, flat: torch.Tensor) -> Begin:
        """Return what replaces all parts of ``flat`` by their owners' decoded payloads."""
        key = section.dtype, section.exact, tuple(section.pieces)
        if key not in self._begins:
            with torch.inference_mode(False):
                self._begins[key] = self._make_begin(section, flat.numel())
        return self._begins[key]

    def _payload_bytes(self, section: _Section, flat: torch.Tensor) -> int:
        """Return the bytes that this rank sends to each other rank."""
        codec = self._gathers.codecs.decoder(PLAIN if section.exact else OWN)
        return codec.max_bytes(self._part(flat).numel(), NAMES[flat.dtype])

    def _make_begin(self, section: _Section, count: int) -> Begin:
        """Make the gather of one section, on all ranks together."""
        gathers, engine, what = self._gathers, self._gathers.engine, self.what
        codecs, group, rank = gathers.codecs, gathers.group, engine.rank
        on_device = isinstance(self._staging, EncodedWeights)
        if section.exact and on_device:

            def gather(flat: torch.Tensor) -> Callable[[], object]:
                own = flat.view(engine.world_size, -1)[rank]
                return _framework_gather(flat, own, group=group, async_op=True).wait

            return gather
        graph = all_gather(count // engine.world_size, engine.world_size, plain=section.exact)
        if on_device:
            return self._staging.gather(graph, section.dtype, codecs, what)
        dtype, stateless = FLAGS[section.dtype], ErrorFeedback(codecs, rank, engine.world_size)
        about = f"{gathers.mode} {section.dtype} {section.pieces}"
        key = engine.add_key(what, graph, dtype, about, stateless)
        bucket = Bucket(engine, dtype, [(0, count)], [(key, 0)], checked=False, own_keys=[key])

        def begin(flat: torch.Tensor) -> Callable[[], object]:
            ended = gathers.timer()
            future = bucket.begin(flat.data_ptr(), 0, what)
            future.add_done_callback(lambda _: ended())
            return future.result

        return begin


class _SampleRecord:
    """Weights of a sample, in the form of FSDP's record of a parameter, and of its DTensor."""

    _version = 0
    requires_grad = True
    param_dtype = None
    sharded_state = SimpleNamespace(name="SHARDED")

    def __init__(self, weights: torch.Tensor) -> None:
        self._sharded_param_data, self.all_gather_inputs = weights, [weights]
        self.sharded_param = self

    def to_local(self) -> _SampleRecord:
        """Return an object with a version, as a DTensor does."""
        return self


class _Sample(GatherSample):
    """Gathers of weights that change before each repetition, as optimizers change them."""

    def __init__(
        self, gathers: WeightGathers, method: Method, sizes: Sequence[int], dtype: torch.dtype
    ) -> None:
        self._model = gathers
        bits = method.params.get("bits")
        self._gathers = WeightGathers(gathers.engine, gathers.group, method.type, bits)
        self._modules: list[tuple[_ModuleGather, int, torch.Tensor]] = []
        generator = torch.Generator("cpu").manual_seed(gathers.engine.rank)
        for i, size in enumerate(sizes):
            part = size // gathers.engine.world_size
            weights = (0.02 * floats(part).normal_(generator=generator)).to(dtype)
            module = _ModuleGather(f"{MEASURING}{i}", [_SampleRecord(weights)], self._gathers)
            module.allocate((size,), dtype=dtype, device=weights.device)
            module.known = True  # replicas of zeros are equal on all ranks
            self._modules.append((module, size, weights))

    def gather(self) -> None:
        """Gather all weights once."""
        before = self._gathers.engine_bytes_sent
        for module, *_ in self._modules:
            module.gradients_reduced()
        for module, size, weights in self._modules:
            whole = module.allocate((size,), dtype=weights.dtype, device=weights.device)
            part = module._part(whole)
            part.copy_(weights)
            work = module(whole, part, self._gathers.group)
            if work is not None:
                work.wait()
        self._model.engine_bytes_sent += self._gathers.engine_bytes_sent - before


def _gathered(name: str, module: Part, ranks: int) -> GatheredModule:
    """Return the size of a module's gathers."""
    records = managed(module)
    elements = ranks * sum(will_gather(module, each)[1] for each in records)
    trained = [each for each in records if each.sharded_param.requires_grad]
    changing = ranks * sum(will_gather(module, each)[1] for each in trained)
    return GatheredModule(elements, 2 if gathers_again(module, not name) else 1, changing)


def _whole_row(row_bytes: int) -> _Section:
    """Return the section that sends any weights unmodified."""
    dtype = torch.bfloat16 if row_bytes % 4 else torch.float32
    return _Section(dtype, [(0, row_bytes)], exact=True)
