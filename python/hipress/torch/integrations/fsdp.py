"""Compressed gradients in FSDP2: in the reduce-scatter, and between hosts in HSDP's all-reduce.

Weights are gathered by :mod:`hipress.torch.integrations.fsdp_gather`.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Shard

from hipress.autotune.methods import POWERSGD
from hipress.config import AUTO, CompressionConfig
from hipress.errors import HipressError
from hipress.planning.plan import Decision
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.frontend import GroupFrontend
from hipress.torch.autotune.hooks import MEANS, SCATTERS, FlatBucket
from hipress.torch.autotune.optimizers import TunedOptimizers, tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import FLAGS, of_gradient
from hipress.torch.executors.collectives import ReduceScatter
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import Gradient, chunk_of, scattered
from hipress.torch.integrations.checks import group_of, refuse_replicate
from hipress.torch.integrations.fsdp_gather import WeightGathers, check_gather
from hipress.torch.private import queue_callback
from hipress.torch.private_fsdp import ReduceScatter as FsdpReduceScatter
from hipress.torch.private_fsdp import (
    before_backward,
    has_divide_factor,
    hooks,
    managed,
    num_groups,
    premultiplied_by,
    reduce_dtype,
)
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start
from hipress.torch.synchronizer import Shards


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
        self.shards, self.compression = shards, compression

    def gradients(self, size: int, rows: int) -> tuple[Gradient, ...]:
        """Return the gradients in a flat tensor of exactly ``size`` elements in ``rows`` rows."""
        shapes = {name: p.shape for name, p in self._managed if p.requires_grad}
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
                "no gradient"
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
    """Gathers of the weights, if the argument ``gather`` was given."""

    def __init__(self, *args: Any, **options: Any) -> None:
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
        """Call ``finish`` when a bucket is done: now, or at the end of the backward pass."""
        if may_be_late:
            self._late.append((future, finish))
        else:
            self.wait(future)
            finish()

    def _end(self) -> None:
        # FSDP reduces the remaining gradients in its own callback, which may come after this one.
        queue_callback(self._count)

    def _count(self) -> None:
        self._backward = None
        late, self._late = self._late, []
        for future, finish in late:
            self.wait(future)
            finish()
        if self._begun:
            self.step += 1
            self.poll()

    def _shape(self, parameter: DTensor) -> tuple[int, ...]:
        # A reduce-scatter has whole gradients, an all-reduce this rank's shards.
        whole = isinstance(self.collective, ReduceScatter)
        return tuple((parameter if whole else parameter.to_local()).shape)


class _ReduceScatter(FsdpReduceScatter):
    """Reduce-scatter of one FSDP2 module's gradients."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

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
            output_tensor.device.type == "cpu"
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
    """All-reduce of one HSDP module's shards number ``shard``, which are in one row."""

    def __init__(self, unit: Unit, shard: int, module: FSDPModule) -> None:
        self._unit, self._shard, self._module = unit, shard, module

    def __call__(self, row: torch.Tensor) -> None:
        unit, compression = self._unit, self._unit.compression
        gradients = unit.gradients(row.numel(), 1)
        counts = [min(g.chunk, g.count - self._shard * g.chunk) for g in gradients]
        shards = [Gradient(g.name, g.offset, n) for g, n in zip(gradients, counts) if n > 0]
        compression.begin()
        if shards and compression.framework_method:
            bucket = FlatBucket(row)
            compression.wait(compression.start_by_framework(bucket, shards, row.element_size()))
        elif shards:
            compression.wait(compression.start_bucket(row, shards, unit.what))
        if has_divide_factor(self._module):
            row.mul_(compression.engine.world_size)


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
) -> ShardedCompression:
    """Make a ``fully_shard``-ed model reduce-scatter compressed gradients.

    >>> for layer in model.layers: fully_shard(layer)
    >>> hipress.torch.compress_fsdp(fully_shard(model))
    >>> hipress.torch.compress_fsdp(fully_shard(model), "maxmin", bits=8)  # or by name

    Every rank's chunk of every parameter's gradient is encoded separately. Call this on every rank,
    before the first backward pass. If the forward pass does not use a parameter, zeros are used for
    its gradient. A frozen parameter may be unfrozen later, on all ranks at one step.

    Args:
        model: the model after ``fully_shard()``
        type: "auto", a codec's name or a configuration, see :func:`hipress.torch.compress`
        min_size: parameters of fewer elements (with ``replicate_group``: with smaller shards) are
            not compressed; a module's neighboring ones travel together
        warmup_steps: see :func:`hipress.torch.compress`
        plan: see :func:`hipress.torch.compress`; "auto" measures all-reduces
        replicate_group: for hybrid sharding over slow links: the model is sharded inside each host,
            uncompressed, and this group's ranks, one per host with the same shard, average
            compressed shards
        replicate_topology: topology of that average, see :func:`hipress.torch.compress`
        timeout: seconds to wait for another rank; default: the process group's
        encode_on: see :func:`hipress.torch.compress`; messages of "device" travel over the mesh's
            process group, or ``replicate_group``
        shared_momentum: see :func:`hipress.torch.compress`. Without ``replicate_group`` every rank
            gets all ranks' results for it, compressed: twice as much is sent
        optimizer: see :func:`hipress.torch.compress`
        gather: how weights are gathered: "exact", "blocks" or "differences", see
            :mod:`hipress.torch.integrations.fsdp_gather`; default: by PyTorch's own all-gather
        gather_bits: bits of a weight, 1 to 8; default: 8 in blocks, 4 of differences
        params: the codec's own parameters

    Raises:
        ValueError: on every rank, if any rank's model or setting is wrong or they differ
        TypeError: if the model is not a fully_shard-ed one
    """
    _check_model(model, gather)
    sharded = _ShardedModel.of(model, replicate_group)
    optimizers: list[TunedOptimizers | None] = []

    def make_settings() -> Settings:
        _check_sharding(sharded)
        weights = [p for _, p in sharded.parameters]
        check_gather(gather, gather_bits, weights, bool(replicate_group), encode_on)
        settings = Settings.of(
            type,
            params=params,
            topology=replicate_topology,
            min_size=min_size,
            warmup_steps=warmup_steps,
            plan=plan,
            encode_on=encode_on,
            shared_momentum=shared_momentum,
        )
        settings.refuse_low_rank("FSDP2")
        optimizers.append(tuned_optimizers(settings, sharded.trained, optimizer))
        for name, module in sharded.modules.items():
            _check_module(name, module, settings, sharded.names)
        return settings

    settings, engine = _start(
        sharded, make_settings, timeout, optimizer, gather=f"{gather} {gather_bits}"
    )
    frontend = None
    if settings.type == AUTO:
        feedback = None if optimizer is None else optimizers[0].allow_feedback
        frontend = _choose(sharded, settings, engine, feedback)
        settings = frontend.settings_for()
    compression = _compression(sharded, settings, engine)
    if frontend is not None:
        compression.tune(frontend, optimizers[0], results=not sharded.scatters)
    _reduce_by(compression, sharded)
    if gather:
        compression.gathers = WeightGathers(engine, sharded.group, gather, gather_bits, encode_on)
        compression.gathers.attach(model, sharded.modules)
    before_backward(model, compression.enter)
    if hasattr(model, "set_reduce_scatter_unused_params"):  # since PyTorch 2.13
        model.set_reduce_scatter_unused_params(True)
    return compression


# Steps of compress_fsdp().


def _check_model(model: FSDPModule, gather: str | None) -> None:
    """Check that compress_fsdp() can use the model with this PyTorch."""
    if isinstance(model, torch.nn.Module):
        refuse_replicate(model.modules(), "compress_fsdp()")
    if not isinstance(model, FSDPModule):
        raise TypeError(
            f"compress_fsdp() takes a model after fully_shard() and before torch.compile(), not "
            f"{model.__class__.__name__} (for DistributedDataParallel there is "
            "hipress.torch.compress)"
        )
    if not hasattr(model, "set_custom_reduce_scatter"):
        raise TypeError(
            f"compress_fsdp() needs FSDPModule.set_custom_reduce_scatter(), which PyTorch "
            f"{torch.__version__} has not: take a newer one"
        )
    if gather and not hasattr(model, "set_custom_all_gather"):
        raise TypeError(
            f"gather needs FSDPModule.set_custom_all_gather(), which PyTorch {torch.__version__} "
            "has not: take a newer one, or leave gather out"
        )


class _ShardedModel(NamedTuple):
    """Model that compress_fsdp() got."""

    modules: Mapping[str, FSDPModule]
    """FSDP modules by name."""
    names: Mapping[int, str]
    """Names of the parameters by their id."""
    trained: Sequence[tuple[str, DTensor]]
    parameters: Sequence[tuple[str, DTensor]]
    """Trained parameters, and those that may be trained later."""
    mesh: DeviceMesh
    replicate_group: dist.ProcessGroup | None
    group: dist.ProcessGroup
    """Ranks that reduce compressed gradients: those of ``replicate_group``, or of the mesh."""

    @classmethod
    def of(cls, model: FSDPModule, replicate_group: dist.ProcessGroup | None) -> _ShardedModel:
        """Return the model, with whole parameters resharded."""
        modules = {n: each for n, each in model.named_modules() if isinstance(each, FSDPModule)}
        for module in modules.values():
            module.reshard()  # a forward pass may have left whole parameters
        names = {id(p): name for name, p in model.named_parameters()}
        trained, parameters = _parameters(model, modules)
        if not trained:
            raise ValueError("compress_fsdp() takes a model with parameters to train")
        mesh = trained[0][1].device_mesh
        group = group_of(replicate_group or mesh.get_group(0), "compress_fsdp()")
        return cls(modules, names, trained, parameters, mesh, replicate_group, group)

    @property
    def scatters(self) -> bool:
        """Whether the compressed operation is a reduce-scatter, not an all-reduce of shards."""
        return self.replicate_group is None

    @property
    def num_shards(self) -> int:
        """Number of ranks that share the parameters."""
        return self.mesh.size()

    @property
    def shard(self) -> int:
        """Number of this rank's shard."""
        return self.mesh.get_local_rank(0)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the gradients that are reduced, by parameter."""
        return {n: tuple((p if self.scatters else p.to_local()).shape) for n, p in self.parameters}

    @property
    def trained_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes without those of frozen parameters, which are not measured."""
        shapes = self.shapes
        return {name: shapes[name] for name, _ in self.trained}

    @property
    def dtypes(self) -> dict[str, torch.dtype]:
        """Dtypes in which gradients are reduced, by parameter."""
        return {
            self.names[id(each.sharded_param)]: reduce_dtype(module, each)
            for module in self.modules.values()
            if num_groups(module) < 2  # modules with more groups are refused
            for each in managed(module)
        }


def _start(
    sharded: _ShardedModel,
    make_settings: Callable[[], Settings],
    timeout: float | None,
    optimizer: torch.optim.Optimizer | None,
    **same: str,
) -> tuple[Settings, ProcessGroupEngine]:
    """Connect the ranks; see :func:`hipress.torch.start.start`."""
    if not sharded.scatters:
        same["shard"] = str(sharded.shard)
    frozen = [n for n, p in sharded.parameters if not p.requires_grad]
    same["frozen parameters"] = ", ".join(frozen)
    sizes = {n: math.prod(shape) for n, shape in sharded.trained_shapes.items()}
    return start(
        make_settings,
        sharded.group,
        sharded.parameters,
        timeout,
        sizes,
        sharded.dtypes,
        shards=str(sharded.num_shards),
        optimizer=optimizer,
        **same,
    )


def _choose(
    sharded: _ShardedModel, settings: Settings, engine: ProcessGroupEngine, feedback: bool | None
) -> GroupFrontend:
    """Measure, and choose a method for type "auto", on all ranks together."""
    where = device_of([p for _, p in sharded.parameters])
    framework_hooks = SCATTERS if sharded.scatters else MEANS
    with current(where):
        fixed = settings.with_fixed_topology()
        measured = fixed, engine, sharded.group, where, sharded.trained_shapes, sharded.dtypes
        return choose_method(*measured, feedback, framework_hooks, [POWERSGD], later=sharded.shapes)


def _compression(
    sharded: _ShardedModel, settings: Settings, engine: ProcessGroupEngine
) -> ShardedCompression:
    """Return the compression of the model's gradients, which no module uses yet."""
    collective = shards = None
    if sharded.scatters:
        names = [n for n, _ in sharded.parameters]
        collective = ReduceScatter(settings, sharded.group, engine.world_size, names)
    else:
        count, index = sharded.num_shards, sharded.shard
        offsets = {name: index * chunk_of(p.shape, count) for name, p in sharded.parameters}
        shards = Shards(count, index, offsets)
    return ShardedCompression(
        settings, engine, sharded.group, sharded.parameters, collective=collective, shards=shards
    )


def _reduce_by(compression: ShardedCompression, sharded: _ShardedModel) -> None:
    """Make all modules reduce their gradients by a compression."""
    for name, module in sharded.modules.items():
        unit = Unit(name, managed(module), sharded.names, sharded.num_shards, compression)
        if sharded.scatters:
            module.set_custom_reduce_scatter(_ReduceScatter(unit))
        else:
            module.set_all_reduce_hook(_AllReduce(unit, sharded.shard, module))


def _parameters(
    model: FSDPModule, modules: Mapping[str, FSDPModule]
) -> tuple[list[tuple[str, DTensor]], list[tuple[str, DTensor]]]:
    """Return the trained parameters, and those with the parameters that may be trained later.

    The latter are frozen now. A frozen parameter that would be refused if it were trained is left
    out. Both results are in the model's order.
    """
    named = [(name, p) for name, p in model.named_parameters() if isinstance(p, DTensor)]
    trained = [(name, p) for name, p in named if p.requires_grad]
    if not trained:
        return [], []
    first = trained[0][1]
    reduced = {id(each.sharded_param) for module in modules.values() for each in managed(module)}

    def may_be_trained(p: DTensor) -> bool:
        alike = p.device_mesh == first.device_mesh and p.placements == (Shard(0),)
        return bool(alike and p.numel() and p.device == first.device and of_gradient(p) in FLAGS)

    return trained, [
        (name, p)
        for name, p in named
        if p.requires_grad or (id(p) in reduced and may_be_trained(p))
    ]


def _check_sharding(sharded: _ShardedModel) -> None:
    """Check that the trained parameters are sharded so that gradients can be compressed."""
    parameters, mesh, replicate_group = sharded.trained, sharded.mesh, sharded.replicate_group
    for name, module in sharded.modules.items():
        if num_groups(module) > 1:
            raise ValueError(
                f"module {name!r} has {num_groups(module)} groups of parameters, which are sharded "
                "over different meshes; compress_fsdp() takes modules with one: call fully_shard() "
                "on its parts first"
            )
    for name, p in parameters:
        if not p.numel():
            raise ValueError(
                f"parameter {name!r} has no elements, and FSDP2 cannot reduce a gradient without: "
                "freeze it, or give it to fully_shard() among ignored_params"
            )
        if p.device_mesh.ndim != 1:
            raise ValueError(
                f"parameter {name!r} is on a mesh of {p.device_mesh.ndim} dimensions; "
                'compress_fsdp() takes one: give fully_shard() mesh["shard"] and, to average '
                'compressed between hosts, compress_fsdp() mesh["replicate"].get_group() as '
                "replicate_group"
            )
        if p.placements[0].is_replicate():
            raise ValueError(
                f"parameter {name!r} is replicated over its mesh, not sharded: wrap the model in "
                "DistributedDataParallel instead, for hipress.torch.compress"
            )
        if p.device_mesh != mesh:
            raise ValueError(
                f"parameters {parameters[0][0]!r} and {name!r} are sharded over different ranks; "
                "compress_fsdp() takes a model that is sharded over the same ranks throughout"
            )
        if p.placements != (Shard(0),):
            raise ValueError(
                f"parameter {name!r} is sharded as {p.placements[0]}; compress_fsdp() takes "
                "parameters that are sharded by dimension 0"
            )
    if replicate_group is not None:
        sharing = set(dist.get_process_group_ranks(mesh.get_group(0)))
        common = sorted(sharing & set(dist.get_process_group_ranks(replicate_group)))
        if common != [dist.get_rank()]:
            raise ValueError(
                "replicate_group must have one rank of each host, those that have the same shard; "
                f"ranks {common} are in it that have different shards of one model"
            )


def _check_module(
    module_name: str, module: FSDPModule, settings: Settings, names: Mapping[int, str]
) -> None:
    if not managed(module):
        return
    if any(isinstance(hook, (_ReduceScatter, _AllReduce)) for hook in hooks(module)):
        raise ValueError(f"module {module_name!r} has compressed gradients already")
    if hooks(module)[1] is not None:
        raise ValueError(f"module {module_name!r} has an all-reduce hook already")
    for each in managed(module):
        parameter, name = each.sharded_param, names[id(each.sharded_param)]
        dtype = reduce_dtype(module, each)
        if dtype not in FLAGS and settings.compresses(name, parameter.numel()):
            raise ValueError(
                f"the gradient of {name!r} is reduced as {str(dtype).removeprefix('torch.')}; what "
                "can be compressed is float32, float16 and bfloat16"
            )
