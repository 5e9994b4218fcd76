"""Compressed gradients in FSDP2: in the reduce-scatter, and between hosts in HSDP's all-reduce."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from hipress.autotune.methods import POWERSGD
from hipress.config import AUTO, CompressionConfig
from hipress.planning.plan import Decision
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.hooks import MEANS, SCATTERS, FlatBucket
from hipress.torch.autotune.optimizers import TunedOptimizers, tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.collectives import ReduceScatter
from hipress.torch.executors.engine import HipressError
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import Gradient, chunk_of, scattered
from hipress.torch.integrations.checks import group_of, refuse_replicate
from hipress.torch.integrations.fsdp_checks import check_groups, check_sharding, parameters_of
from hipress.torch.integrations.fsdp_gather import WeightGathers, check_mode
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

    Args:
        shards: number of ranks among which the parameters are divided
    """

    def __init__(self, module: str, managed: Sequence, names: Mapping[int, str], shards: int):
        self.module = module
        self.what = f"module {module!r}" if module else "the root module"
        self._managed = [(names[id(each.sharded_param)], each) for each in managed]
        self.shards = shards

    def accepts_late_gradients(self, dtype: torch.dtype) -> bool:
        """Return whether FSDP only takes views of a reduce-scatter's result in ``dtype``.

        Then the result may be written after FSDP has got the tensor, before the backward pass ends.
        Otherwise FSDP converts it, adds it to accumulated gradients, or calls the user's hooks.
        """
        weights = [each.sharded_param for _, each in self._managed]
        return all(
            weight.dtype == dtype
            and weight.grad is None
            and not getattr(weight, "_post_accumulate_grad_hooks", None)
            for weight in weights
            if weight.requires_grad
        )

    def gradients(self) -> tuple[Gradient, ...]:
        """Return the gradients in the input of a reduce-scatter."""
        trained = [
            (name, each.sharded_param.shape)
            for name, each in self._managed
            if each.sharded_param.requires_grad
        ]
        return tuple(scattered(dict(trained), self.shards))


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

    def reduce(
        self,
        unit: Unit,
        flat: torch.Tensor,
        gradients: Sequence[Gradient],
        finish: Callable[[], None] = lambda: None,
        may_be_late: bool = False,
    ) -> None:
        """Synchronize a module's gradients, and call ``finish`` with the results in ``flat``.

        Args:
            may_be_late: whether that is in time at the end of the backward pass. Otherwise this
                waits, because FSDP needs the results at once.
        """
        future = self.start_bucket(flat, gradients, unit.what)
        if may_be_late:
            self._late.append((future, finish))
        else:
            self.wait(future)
            finish()

    def reduce_own(self, unit: Unit, row: torch.Tensor, flat: torch.Tensor) -> None:
        """Sum a module's gradients by PyTorch's own reduce-scatter, and wait."""
        ended = self.timer()
        work = dist.reduce_scatter_tensor(row, flat, group=self.collective.group, async_op=True)
        self.engine.wait(work, unit.what, flat.device)
        ended()

    def gradients(self, unit: Unit, size: int, rows: int) -> tuple[Gradient, ...]:
        """Return a module's gradients in a flat tensor of ``size`` elements in ``rows`` rows.

        Raises:
            HipressError: if the tensor does not have exactly these
        """
        found = unit.gradients()
        for name, _, count, *_ in found:
            if (
                name not in self.sizes
                and not self.framework_method
                and self.compresses(name, count)
            ):
                self.refuse(
                    unit,
                    f"{name!r} was frozen when compress_fsdp() was called, and cannot be "
                    "compressed beside what was trained then: leave it frozen, or unfreeze it "
                    "before compress_fsdp(), which says why",
                )
        wanted = rows * sum(gradient.chunk for gradient in found)
        if size != wanted:
            names = ", ".join(gradient.name for gradient in found[:3])
            self.refuse(
                unit,
                f"FSDP reduces {size} elements, not the {wanted} of {names}...: some of these have "
                "no gradient",
            )
        return found

    def refuse(self, unit: Unit, problem: str) -> None:
        """End the step on all ranks.

        Raises:
            HipressError: always
        """
        raise self.engine.fail(HipressError(f"{unit.what}: {problem}"), unit.what)

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

    def __init__(self, unit: Unit, compression: ShardedCompression) -> None:
        self._unit, self._compression = unit, compression

    def allocate(self, size, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        rows, compression = self._unit.shards, self._compression
        factor = self._factor(op, rows)
        gradients = compression.gradients(self._unit, input_tensor.numel(), rows)
        compression.begin()
        if compression.gathers is not None:
            compression.gathers.gradients_reduced(self._unit.module)
        if compression.framework_method:
            compression.count_by_framework(gradients, input_tensor.element_size())
            compression.reduce_own(self._unit, output_tensor, input_tensor)
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
            and self._unit.accepts_late_gradients(output_tensor.dtype)
        )
        compression.reduce(self._unit, input_tensor, gradients, finish, may_be_late)

    def _factor(self, op: Any, rows: int) -> float:
        """Return the factor from the ranks' mean to the result that FSDP requests.

        Raises:
            HipressError: if FSDP requests a result that is not a multiple of the mean.
        """
        kind = getattr(op, "op", op)
        if kind == dist.ReduceOp.PREMUL_SUM:  # after set_gradient_divide_factor()
            return rows * premultiplied_by(op)
        if kind not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            self._compression.refuse(
                self._unit, f"gradients can be summed or averaged, not reduced by {kind}"
            )
        return 1.0 if kind == dist.ReduceOp.AVG else float(rows)


class _AllReduce:
    """All-reduce of one HSDP module's shards, which are in one row.

    Args:
        unit: Parameters of the module.
        shard: Index of this rank's shard.
        compression: Compression of the model.
        has_divide_factor: Returns whether the module has a gradient divide factor now.
    """

    def __init__(
        self,
        unit: Unit,
        shard: int,
        compression: ShardedCompression,
        has_divide_factor: Callable[[], bool],
    ) -> None:
        self._unit, self._shard, self._compression = unit, shard, compression
        self._has_divide_factor = has_divide_factor

    def __call__(self, row: torch.Tensor) -> None:
        gradients = self._compression.gradients(self._unit, row.numel(), 1)
        counts = [min(g.chunk, g.count - self._shard * g.chunk) for g in gradients]
        shards = [Gradient(g.name, g.offset, n) for g, n in zip(gradients, counts) if n > 0]
        self._compression.begin()
        if shards and self._compression.framework_method:
            future = self._compression.start_by_framework(
                FlatBucket(row), shards, row.element_size()
            )
            self._compression.wait(future)
        elif shards:
            self._compression.reduce(self._unit, row, shards)
        if self._has_divide_factor():
            row.mul_(self._compression.engine.world_size)


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
    modules = {n: module for n, module in model.named_modules() if isinstance(module, FSDPModule)}
    for module in modules.values():
        module.reshard()  # a forward pass may have left whole parameters
    names = {id(p): name for name, p in model.named_parameters()}
    trained, parameters = parameters_of(model, modules)
    if not trained:
        raise ValueError("compress_fsdp() takes a model with parameters to train")
    mesh = trained[0][1].device_mesh
    group = group_of(replicate_group or mesh.get_group(0), "compress_fsdp()")

    def make_settings() -> Settings:
        check_groups(modules)
        check_sharding(trained, mesh, replicate_group)
        check_mode(gather, gather_bits, [p for _, p in parameters], replicate_group is not None)
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
        optimizers.append(tuned_optimizers(settings, trained, optimizer))
        for name, module in modules.items():
            _check_module(name, module, settings, names)
        return settings

    optimizers: list[TunedOptimizers | None] = []
    num_shards, shard = mesh.size(), mesh.get_local_rank(0)
    same = {"shard": str(shard)} if replicate_group else {}
    same["frozen parameters"] = ", ".join(n for n, p in parameters if not p.requires_grad)
    shapes = {n: tuple((p.to_local() if replicate_group else p).shape) for n, p in parameters}
    now = {n: shapes[n] for n, _ in trained}  # only these are measured, not frozen ones
    sizes = {n: math.prod(shape) for n, shape in now.items()}
    dtypes = {
        names[id(each.sharded_param)]: reduce_dtype(module, each)
        for module in modules.values()
        if num_groups(module) < 2  # modules with more groups are refused below
        for each in managed(module)
    }
    settings, engine = start(
        make_settings,
        group,
        parameters,
        timeout,
        sizes,
        dtypes,
        allow_auto=True,
        shards=str(num_shards),
        optimizer=optimizer,
        gather=f"{gather} {gather_bits}",
        **same,
    )
    frontend = None
    if settings.type == AUTO:
        where, scatters = device_of([p for _, p in parameters]), replicate_group is None
        framework_hooks = SCATTERS if scatters else MEANS
        feedback = None if optimizer is None else optimizers[0].allow_feedback
        with current(where):
            fixed = settings.with_fixed_topology()
            measured = fixed, engine, group, where, now, dtypes, feedback
            frontend = choose_method(*measured, framework_hooks, [POWERSGD], later=shapes)
        settings = frontend.settings_for()
    collective = shards = None
    if replicate_group is None:
        collective = ReduceScatter(settings, group, engine.world_size, [n for n, _ in parameters])
    else:
        offsets = {name: shard * chunk_of(p.shape, num_shards) for name, p in parameters}
        shards = Shards(num_shards, shard, offsets)
    compression = ShardedCompression(
        settings, engine, group, parameters, collective=collective, shards=shards
    )
    if frontend is not None:
        compression.tune(frontend, optimizers[0], results=not scatters)
    for name, module in modules.items():
        unit = Unit(name, managed(module), names, num_shards)
        if replicate_group is None:
            module.set_custom_reduce_scatter(_ReduceScatter(unit, compression))
        else:
            has_factor = partial(has_divide_factor, module)
            module.set_all_reduce_hook(_AllReduce(unit, shard, compression, has_factor))
    if gather:
        compression.gathers = WeightGathers(engine, group, gather, gather_bits)
        compression.gathers.attach(model, modules)
    before_backward(model, compression.enter)
    if hasattr(model, "set_reduce_scatter_unused_params"):  # since PyTorch 2.13
        model.set_reduce_scatter_unused_params(True)
    return compression


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
