"""Compressed gradients in FSDP2: in the reduce-scatter, and in HSDP's all-reduce.

:mod:`hipress.torch.integrations.fsdp_meshes` decides which of these are compressed. Weights are
gathered by :mod:`hipress.torch.integrations.fsdp_gather`.
"""

from __future__ import annotations

import functools
import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from hipress.autotune.methods import POWERSGD
from hipress.config import AUTO, CompressionConfig
from hipress.errors import HipressError
from hipress.planning.plan import Decision
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.frontend import GroupFrontend
from hipress.torch.autotune.gathers import DIFFERENCES, no_gather
from hipress.torch.autotune.hooks import MEANS, SCATTERS, FlatBucket
from hipress.torch.autotune.optimizers import TunedOptimizers, tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.collectives import ReduceScatter
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import Gradient, scattered
from hipress.torch.integrations.checks import refuse_replicate
from hipress.torch.integrations.fsdp_gather import (
    PYTORCH,
    WeightGathers,
    check_gather,
    check_memory,
    replica_bytes,
    why_not_chosen,
)
from hipress.torch.integrations.fsdp_meshes import (
    Reduction,
    check_meshes,
    reductions,
    share_problem,
)
from hipress.torch.private import queue_callback
from hipress.torch.private_fsdp import (
    DelegatedAllReduce,
    Part,
    before_backward,
    delegate_all_reduce,
    has_divide_factor,
    hooks,
    managed,
    premultiplied_by,
    reduce_dtype,
    shape_of,
)
from hipress.torch.private_fsdp import ReduceScatter as FsdpReduceScatter
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start
from hipress.torch.stats import Stats

_LATE = 1
"""Reduce-scatters that may run while the next module's gradients are computed. Each one keeps the
gradients of a whole module."""


class Unit:
    """Parameters of one FSDP module, whose gradients are reduced together.

    FSDP2 passes them in one flat tensor. It has a row for each rank, with a chunk of each gradient,
    the same rows of its dimension 0. FSDP2 pads the last chunks with zeros. They belong to no
    gradient here, so no codec encodes them.
    """

    def __init__(
        self,
        module: str,
        managed: Sequence[Any],
        names: Mapping[int, str],
        shards: int,
        compression: ShardedCompression,
    ) -> None:
        self.module = module
        self.what = f"module {module!r}" if module else "the root module"
        self._managed = [(names[id(each.sharded_param)], each.sharded_param) for each in managed]
        self._shapes = {names[id(each.sharded_param)]: shape_of(each, shards) for each in managed}
        self.shards, self.compression = shards, compression

    def gradients(self, size: int, rows: int) -> tuple[Gradient, ...]:
        """Return the gradients in a flat tensor of exactly ``size`` elements in ``rows`` rows."""
        shapes = {name: self._shapes[name] for name, p in self._managed if p.requires_grad}
        found = tuple(scattered(shapes, self.shards))
        compression = self.compression
        for name, _, count, *_ in found:
            if name in compression.sizes or compression.framework_method:
                continue
            if compression.compresses(name, count):
                raise self.error(
                    f"{name!r} was frozen when compress_fsdp() was called, and cannot be "
                    "compressed with the parameters that were trained then: leave it frozen, or "
                    "unfreeze it before compress_fsdp(), which says why"
                )
        wanted = rows * sum(gradient.chunk for gradient in found)
        if size != wanted:
            names = ", ".join(gradient.name for gradient in found[:3])
            raise self.error(
                f"FSDP reduces {size} elements, not the {wanted} of {names}...: some of these have "
                "no gradient (before PyTorch 2.13, the forward pass must use all of them)"
            )
        return found

    def accepts_late_gradients(self, dtype: torch.dtype) -> bool:
        """Return whether FSDP only takes views of a reduce-scatter's result in ``dtype``.

        Then the result may be written after FSDP has got the tensor, before the backward pass ends.
        Otherwise FSDP converts it, adds it to accumulated gradients, or calls the user's hooks.
        """
        return all(
            weight.dtype == dtype
            and weight.grad is None
            and not getattr(weight, "_post_accumulate_grad_hooks", None)
            for _, weight in self._managed
            if weight.requires_grad
        )

    def error(self, problem: str) -> HipressError:
        """Return an error that ends the step on all ranks."""
        return self.compression.engine.fail(HipressError(f"{self.what}: {problem}"), self.what)


class ShardedCompression(TunedSynchronizer):
    """Compression of a model, with its state. :func:`compress_fsdp` returns it.

    ``state_dict()`` and ``load_state_dict()`` keep residuals, momentum and step; see
    :mod:`hipress.torch.state.checkpoint`.
    """

    _backward: weakref.ref | None = None
    """Callback that autograd calls when the outermost backward pass ends."""
    _begun = False
    gathers: WeightGathers | None = None
    """Gathers of the weights, unless they are PyTorch's for the whole training."""

    def __init__(
        self,
        *args: Any,
        shapes: Mapping[str, tuple[int, ...]],
        **options: Any,
    ) -> None:
        self._reduced_shapes = shapes
        super().__init__(*args, **options)
        self._late: list[tuple[torch.futures.Future, Callable[[], None]]] = []
        """Running reduce-scatters whose results FSDP need not have before the backward pass ends.
        """

    def enter(self) -> None:
        """Count a step when the outermost backward pass ends.

        A reentrant checkpoint's backward passes run inside another one.
        """
        if self._backward is None or self._backward() is None:
            end = self._end  # a new object, which autograd frees with the pass, also after an error
            self._backward, self._begun, self._late = weakref.ref(end), False, []
            queue_callback(end)

    def begin(self) -> None:
        """Start a step, if needed. Called before each module's gradients are reduced."""
        self.enter()
        if not self._begun:  # the first module of this step
            self._begun = True
            self.begin_step()

    def finish_bucket(
        self, future: torch.futures.Future, finish: Callable[[], None], may_be_late: bool
    ) -> None:
        """Call ``finish`` when a bucket is done: now, or before the backward pass ends."""
        if may_be_late:
            self._late.append((future, finish))
            while len(self._late) > _LATE or (self._late and self._late[0][0].done()):
                self._finish_late()
        else:
            self.wait(future)
            finish()

    def _finish_late(self) -> None:
        future, finish = self._late.pop(0)
        self.wait(future)
        finish()

    def _end(self) -> None:
        # FSDP reduces the remaining gradients in its own callback, which may come after this one.
        queue_callback(self._count)

    def _count(self) -> None:
        self._backward = None
        while self._late:
            self._finish_late()
        if self._begun:
            self.step += 1
            if self.gathers is not None:
                self.gathers.begin_step()  # the next gathers are those of the next step
            self.poll()

    def stats(self) -> Stats:
        """Return the bytes of this rank's gradients, with reasons, and of its gathers."""
        found = super().stats()
        if self.gathers is not None:
            found.gathered = self.gathers.bytes_sent
            found.gathered_uncompressed = self.gathers.uncompressed_bytes
        return found

    def _shape(self, parameter: DTensor) -> tuple[int, ...]:
        # A reduce-scatter has whole gradients, an all-reduce this rank's shards.
        return self._reduced_shapes[self.names[id(parameter)]]


class MeshCompression:
    """Compression of a model whose gradients several process groups reduce.

    :func:`compress_fsdp` returns it, for hybrid sharding across hosts or expert parallelism.

    Args:
        parts: compressions, one for each process group of this rank
    """

    def __init__(self, parts: Sequence[ShardedCompression]) -> None:
        self.parts = tuple(parts)
        gathers = [part.gathers for part in parts if part.gathers is not None]
        self.gathers = MeshGathers(gathers) if gathers else None
        """Gathers of the weights, unless they are PyTorch's for the whole training."""

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return max(part.step for part in self.parts)

    @property
    def compresses_now(self) -> bool:
        """Whether the last step came after the warm-up."""
        return all(part.compresses_now for part in self.parts)

    def stats(self) -> Stats:
        """Return the bytes of this rank's gradients, counted in each step over a process group."""
        found = Stats()
        for part in self.parts:
            found.add(part.stats())
        return found

    def explain(self) -> str:
        """Return the reasons for the compression of each part."""
        return "\n".join(str(part.explain()) for part in self.parts)

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return the numbers of all parts for a logger, with "part0/" and so on before each name.

        Args:
            prefix: text before each name, such as "hipress/"
        """
        found: dict[str, float] = {}
        for i, part in enumerate(self.parts):
            found.update(part.metrics(f"{prefix}part{i}/"))
        return found

    def forbid_feedback(self) -> None:
        """Do not use methods with error feedback with any optimizer."""
        for part in self.parts:
            part.forbid_feedback()

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another method."""
        return all(part.is_settled for part in self.parts)

    def poll(self) -> None:
        """Raise an error that is known by now, without waiting."""
        for part in self.parts:
            part.poll()

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's residuals, momentum and steps, in host memory, by part."""
        return {f"part{i}": part.state_dict() for i, part in enumerate(self.parts)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load a state.

        Raises:
            ValueError: if something is missing; the message names it
        """
        if len(saved) != len(self.parts):
            raise ValueError(
                f"the state is of {len(saved)} process groups, and this rank reduces the model's "
                f"gradients in {len(self.parts)}"
            )
        for i, part in enumerate(self.parts):
            part.load_state_dict(saved[f"part{i}"])


class MeshGathers:
    """Gathers of weights of several process groups."""

    def __init__(self, parts: Sequence[WeightGathers]) -> None:
        self.parts = tuple(parts)

    @property
    def replica_bytes(self) -> int:
        """Bytes of the replicas of all modules whose weights were gathered."""
        return sum(part.replica_bytes for part in self.parts)

    @property
    def exchanges(self) -> int:
        """Exchanges of a module's weights so far."""
        return sum(part.exchanges for part in self.parts)

    def forget(self) -> None:
        """Send all weights exactly in the next gathers. All ranks call this together."""
        for part in self.parts:
            part.forget()


class _ReduceScatter(FsdpReduceScatter):
    """Reduce-scatter of one FSDP2 module's gradients."""

    def __init__(self, unit: Unit, is_last: bool) -> None:
        self._unit, self._is_last = unit, is_last

    def allocate(self, size, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        unit, compression = self._unit, self._unit.compression
        rows, factor = unit.shards, self._factor(op)
        gradients = unit.gradients(input_tensor.numel(), rows)
        compression.begin()
        if compression.gathers is not None:
            compression.gathers.gradients_reduced(unit.module)
        if compression.framework_method:
            compression.count_by_framework(gradients, input_tensor.element_size())
            ended = compression.timer()
            work = dist.reduce_scatter_tensor(
                output_tensor, input_tensor, group=compression.collective.group, async_op=True
            )
            compression.engine.wait(work, unit.what, input_tensor.device)
            ended()
            if factor != rows:
                output_tensor.div_(rows / factor)
            return

        def finish() -> None:
            with torch.no_grad():
                output_tensor.copy_(input_tensor.view(rows, -1)[compression.engine.rank])
                if factor != 1:
                    output_tensor.mul_(factor)

        may_be_late = (
            self._is_last
            and output_tensor.device.type == "cpu"
            and getattr(op, "op", op) != dist.ReduceOp.SUM  # whose result FSDP may divide at once
            and unit.accepts_late_gradients(output_tensor.dtype)
        )
        future = compression.start_bucket(input_tensor, gradients, unit.what)
        compression.finish_bucket(future, finish, may_be_late)

    def _factor(self, op: Any) -> float:
        """Return the factor from the ranks' mean to the result that FSDP requests."""
        kind = getattr(op, "op", op)
        if kind == dist.ReduceOp.PREMUL_SUM:  # after set_gradient_divide_factor()
            return self._unit.shards * premultiplied_by(op)
        if kind not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise self._unit.error(f"gradients can be summed or averaged, not reduced by {kind}")
        return 1.0 if kind == dist.ReduceOp.AVG else float(self._unit.shards)


class _AllReduce:
    """All-reduce of one HSDP module's shards number ``shard``, which are in one row.

    Args:
        native: FSDP's own all-reduce, which this one replaces. None: FSDP has none.
    """

    def __init__(
        self, unit: Unit, shard: int, module: Part, native: DelegatedAllReduce | None
    ) -> None:
        self._unit, self._shard, self._module, self._native = unit, shard, module, native

    def __call__(self, row: torch.Tensor) -> None:
        unit, compression = self._unit, self._unit.compression
        gradients = unit.gradients(row.numel(), 1)
        counts = [min(g.chunk, g.count - self._shard * g.chunk) for g in gradients]
        shards = [Gradient(g.name, g.offset, n) for g, n in zip(gradients, counts) if n > 0]
        sums = self._sums()
        compression.begin()

        def finish() -> None:
            if sums:
                with torch.no_grad():
                    row.mul_(compression.engine.world_size)

        if not shards:
            return finish()
        if compression.framework_method:
            bucket = FlatBucket(row)
            future = compression.start_by_framework(bucket, shards, row.element_size())
        else:
            future = compression.start_bucket(row, shards, unit.what)
        may_be_late = (
            self._native is not None
            and not sums  # which FSDP may divide at once
            and row.device.type == "cpu"
            and unit.accepts_late_gradients(row.dtype)
        )
        compression.finish_bucket(future, finish, may_be_late)

    def _sums(self) -> bool:
        """Return whether FSDP requests a sum over the ranks, not a mean."""
        if self._native is None:
            return has_divide_factor(self._module)
        return getattr(self._native.op, "op", self._native.op) == dist.ReduceOp.SUM


def compress_fsdp(
    model: FSDPModule,
    type: str | CompressionConfig = AUTO,
    *,
    min_size: int = MIN_SIZE,
    warmup_steps: int = 0,
    plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None,
    replicate_group: dist.ProcessGroup | None = None,
    replicate_topology: str | None = None,
    timeout: float | None = None,
    encode_on: str = "host",
    shared_momentum: float = 0.0,
    optimizer: torch.optim.Optimizer | None = None,
    gather: str | None = None,
    gather_bits: int | None = None,
    **params: object,
) -> ShardedCompression | MeshCompression:
    """Make a ``fully_shard``-ed model reduce-scatter compressed gradients.

    >>> for layer in model.layers: fully_shard(layer)
    >>> hipress.torch.compress_fsdp(fully_shard(model))
    >>> hipress.torch.compress_fsdp(fully_shard(model), "maxmin", bits=8)  # or by name

    The mesh may have dimensions for hybrid sharding, and tensor or expert parallelism. Of hybrid
    sharding's two steps, reduce-scatter and all-reduce, those that cross hosts are compressed.

    Every rank's chunk of every parameter's gradient is encoded separately. Call this on every rank,
    before the first backward pass. If the forward pass does not use a parameter, zeros are used for
    its gradient. A frozen parameter may be unfrozen later, on all ranks at one step.

    Args:
        model: the model after ``fully_shard()``
        type: "auto", a codec's name or a configuration, see :func:`hipress.torch.compress`
        min_size: parameters of fewer elements (if shards are averaged: with smaller shards) are
            not compressed; a module's neighboring ones travel together
        warmup_steps: see :func:`hipress.torch.compress`
        plan: see :func:`hipress.torch.compress`; "auto" measures all-reduces
        replicate_group: ranks, one per host with the same shard, that average compressed shards of
            a model that is sharded inside each host. Leave it out if ``fully_shard()`` got a mesh
            with the replicas
        replicate_topology: topology of an average of shards, see :func:`hipress.torch.compress`
        timeout: seconds to wait for another rank; default: the process group's
        encode_on: see :func:`hipress.torch.compress`; messages of "device" travel over the process
            group whose ranks reduce
        shared_momentum: see :func:`hipress.torch.compress`. In a reduce-scatter every rank gets
            all ranks' results for it, compressed: twice as much is sent
        optimizer: see :func:`hipress.torch.compress`
        gather: how weights are gathered: "pytorch" (PyTorch's own all-gather), "exact", "lossless",
            "blocks" or "differences", see :mod:`hipress.torch.integrations.fsdp_gather`, or "auto",
            which measures these and chooses one; default: "auto" with type "auto" and a model in
            host memory, otherwise "pytorch"
        gather_bits: bits of a weight, 1 to 8; default: 8 in blocks, 4 of differences
        params: the codec's own parameters

    Returns:
        the compression; a ``MeshCompression`` if several process groups reduce the gradients

    Raises:
        ValueError: on every rank, if any rank's model or setting is wrong or they differ
        TypeError: if the model is not a fully_shard-ed one
    """
    _check_model(model, gather)
    steps = reductions(model, replicate_group, timeout)
    crosses = any(step.scatters for step in steps)
    tuned: list[TunedOptimizers | None] = []
    problem: Exception | None = None

    def make_settings(step: Reduction) -> Settings:
        if problem:
            raise problem
        check_meshes(step)
        if step.scatters or not crosses:
            weights = [p for _, p in step.parameters]
            check_gather(gather, gather_bits, weights, not crosses, encode_on)
            if gather == DIFFERENCES:
                check_memory(_replica_bytes(steps), weights[0].device, encode_on)
        _check_tensor_parallel(step, type, plan, gather if step.scatters else None)
        followed = step.scatters and any(
            each.modules is step.modules and not each.scatters for each in steps
        )
        settings = Settings.of(
            type,
            params=params,
            topology=replicate_topology,
            min_size=min_size,
            warmup_steps=warmup_steps,
            plan=plan,
            encode_on=encode_on,
            shared_momentum=0.0 if followed else shared_momentum,  # which counts once
        )
        settings.refuse_low_rank("FSDP2")
        if followed and settings.momentum:
            raise ValueError(
                f"{settings.type} has momentum {settings.momentum}, which would count twice where "
                f"reduce-scatter and all-reduce are compressed: give {settings.type} momentum=0"
            )
        tuned.append(tuned_optimizers(settings, step.trained, optimizer))
        for name, module in step.modules.items():
            _check_module(name, module, settings, step)
        return settings

    started: list[tuple[Settings, ProcessGroupEngine]] = []
    for step in steps:
        # Ranks of a later group also report an error of an earlier one, which not all had.
        try:
            started.append(
                _start(
                    step,
                    functools.partial(make_settings, step),
                    timeout,
                    optimizer,
                    gather=f"{gather} {gather_bits}",
                )
            )
        except ValueError as error:
            problem = problem or error
    problem = share_problem(steps, problem, timeout)
    if problem:
        raise problem
    parts = []
    for step, (settings, engine), optimizers in zip(steps, started, tuned):
        frontend = None
        is_auto = settings.type == AUTO
        if is_auto:
            feedback = None if optimizer is None else optimizers.allow_feedback
            frontend = _choose(step, settings, engine, feedback)
            settings = frontend.settings_for()
        compression = _compression(step, settings, engine)
        if frontend is not None:
            compression.tune(frontend, optimizers, results=not step.scatters)
        if gather == AUTO or (gather is None and is_auto):
            if step.scatters or not crosses:
                _choose_gather(compression, step, model, steps)
        elif gather not in (None, PYTORCH) and step.scatters:
            compression.gathers = WeightGathers(engine, step.group, gather, gather_bits, encode_on)
            compression.gathers.attach(model, step.modules)
        if compression.gathers is not None and frontend is not None:
            gathers = compression.gathers
            frontend.other_bytes_sent = functools.partial(getattr, gathers, "engine_bytes_sent")
        parts.append(compression)
    for step, compression in zip(steps, parts):
        _reduce_by(compression, step)
        before_backward(model, compression.enter)
    if hasattr(model, "set_reduce_scatter_unused_params"):  # since PyTorch 2.13
        model.set_reduce_scatter_unused_params(True)
    return parts[0] if len(parts) == 1 else MeshCompression(parts)


# Steps of compress_fsdp().


def _check_model(model: FSDPModule, gather: str | None) -> None:
    """Check that compress_fsdp() can use the model with this PyTorch."""
    if isinstance(model, torch.nn.Module):
        others = (each for each in model.modules() if not isinstance(each, FSDPModule))
        refuse_replicate(others, "compress_fsdp()")
    if not isinstance(model, FSDPModule):
        raise TypeError(
            "compress_fsdp() takes a model after fully_shard() and before torch.compile(), not "
            f"{model.__class__.__name__} (for DistributedDataParallel there is "
            "hipress.torch.compress)"
        )
    if not hasattr(model, "set_custom_reduce_scatter"):
        raise TypeError(
            "compress_fsdp() needs PyTorch 2.9 or newer, which has "
            f"FSDPModule.set_custom_reduce_scatter(); this is PyTorch {torch.__version__}"
        )
    if gather not in (None, PYTORCH) and not hasattr(model, "set_custom_all_gather"):
        raise TypeError(
            f"gather needs FSDPModule.set_custom_all_gather(), which PyTorch {torch.__version__} "
            "has not: take a newer one, or leave gather out"
        )


def _check_tensor_parallel(step: Reduction, type: object, plan: object, gather: str | None) -> None:
    """Refuse what would make a parameter differ between ranks of tensor parallelism.

    Each of these ranks measures for type and plan "auto", and rounds blocks of weights with others.
    """
    several = step.on_several_ranks()
    if several and gather in ("blocks", "differences"):
        raise ValueError(
            f"gather={gather!r} would round parameter {several[0]!r} differently on the ranks of "
            'tensor parallelism, which all have it: use gather="exact"'
        )
    kind = getattr(type, "type", type)
    if several and AUTO in (kind, plan, getattr(type, "plan", None)):
        raise ValueError(
            "type and plan 'auto' could choose differently on the ranks of tensor parallelism, "
            f"which all have parameter {several[0]!r}: name a codec"
        )


def _start(
    step: Reduction,
    make_settings: Callable[[], Settings],
    timeout: float | None,
    optimizer: torch.optim.Optimizer | None,
    **same: str,
) -> tuple[Settings, ProcessGroupEngine]:
    """Connect the ranks; see :func:`hipress.torch.start.start`."""
    if not step.scatters:
        same["shard"] = str(step.shard)
    frozen = [n for n, p in step.parameters if not p.requires_grad]
    same["frozen parameters"] = ", ".join(frozen)
    sizes = {n: math.prod(shape) for n, shape in step.trained_shapes.items()}
    return start(
        make_settings,
        step.group,
        step.parameters,
        timeout,
        sizes,
        step.dtypes,
        shards=str(step.num_shards),
        optimizer=optimizer,
        **same,
    )


def _choose(
    step: Reduction, settings: Settings, engine: ProcessGroupEngine, feedback: bool | None
) -> GroupFrontend:
    """Measure, and choose a method for type "auto", on all ranks together."""
    where = device_of([p for _, p in step.parameters])
    framework_hooks = SCATTERS if step.scatters else MEANS
    with current(where):
        fixed = settings.with_fixed_topology()
        measured = fixed, engine, step.group, where, step.trained_shapes, step.dtypes
        return choose_method(*measured, feedback, framework_hooks, [POWERSGD], later=step.shapes)


def _compression(
    step: Reduction, settings: Settings, engine: ProcessGroupEngine
) -> ShardedCompression:
    """Return the compression of the model's gradients, which no module uses yet."""
    collective = None
    if step.scatters:
        names = [n for n, _ in step.parameters]
        collective = ReduceScatter(settings, step.group, engine.world_size, names)
    return ShardedCompression(
        settings,
        engine,
        step.group,
        step.parameters,
        collective=collective,
        shards=step.shards(),
        shapes=step.shapes,
        orders=step.orders(),
    )


def _replica_bytes(steps: Sequence[Reduction]) -> int:
    """Return the bytes of this rank's replicas in the gathers of all steps."""
    return sum(replica_bytes(s.modules.values(), s.num_shards) for s in steps if s.scatters)


def _choose_gather(
    compression: ShardedCompression,
    step: Reduction,
    model: FSDPModule,
    steps: Sequence[Reduction],
) -> None:
    """Measure, and choose how weights are gathered, on all ranks together."""
    weights = [p for _, p in step.parameters]
    problem = why_not_chosen(step.modules.values(), device_of(weights), not step.scatters)
    if problem:
        compression.explain_gathers(no_gather(problem))
        return
    compression.gathers = WeightGathers(compression.engine, step.group, PYTORCH)
    may_round = not step.on_several_ranks()
    tuner = compression.gathers.tune(
        model,
        step.modules,
        _replica_bytes(steps),
        lambda: compression.step,
        compression.rank,
        may_round,
    )
    compression.explain_gathers(tuner.explanation)


def _reduce_by(compression: ShardedCompression, step: Reduction) -> None:
    """Make all modules reduce their gradients by a compression."""
    for name, module in step.modules.items():
        unit = Unit(name, managed(module), step.names, step.num_shards, compression)
        if step.scatters:
            module.set_custom_reduce_scatter(_ReduceScatter(unit, step.is_last))
        else:
            native = delegate_all_reduce(module) if step.is_native else None
            module.set_all_reduce_hook(_AllReduce(unit, step.shard, module, native))


def _check_module(module_name: str, module: Part, settings: Settings, step: Reduction) -> None:
    if not managed(module):
        return
    if any(isinstance(hook, (_ReduceScatter, _AllReduce)) for hook in hooks(module)):
        raise ValueError(f"module {module_name!r} has compressed gradients already")
    if hooks(module)[1] is not None:
        raise ValueError(f"module {module_name!r} has an all-reduce hook already")
    may_be_trained = {name for name, _ in step.parameters}
    for each in managed(module):
        parameter, name = each.sharded_param, step.names[id(each.sharded_param)]
        dtype = reduce_dtype(module, each)
        if name not in may_be_trained or dtype in FLAGS:
            continue
        if settings.compresses(name, parameter.numel()):
            raise ValueError(
                f"the gradient of {name!r} is reduced as {str(dtype).removeprefix('torch.')}; what "
                "can be compressed is float32, float16 and bfloat16"
            )
