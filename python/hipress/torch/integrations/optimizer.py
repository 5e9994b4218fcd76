"""Optimizer wrapper with Horovod's interface, and the buckets in which gradients travel."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.hooks import RemovableHandle

from hipress.config import AUTO, CompressionConfig
from hipress.errors import HipressError
from hipress.planning.plan import Decision
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.hooks import MEANS, SUMS, FlatBucket
from hipress.torch.autotune.optimizers import tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import is_dtensor, local_of, of_gradient
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import packed
from hipress.torch.integrations.checks import (
    only_makes_state,
    pairs,
    parameters_of,
    refuse_replicated,
    refuse_sharded,
)
from hipress.torch.integrations.forwarding import Forwarding
from hipress.torch.integrations.site import Site, check_shards, group_of_shards
from hipress.torch.optim import FrozenAdamW
from hipress.torch.private import is_stepped_in_backward, last_gradient_hook, queue_callback
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start

_log = logging.getLogger("hipress")
BUCKET_BYTES = 25 << 20
"""Maximum size of a bucket in bytes, unless one gradient has more."""
_owners: weakref.WeakValueDictionary[int, DistributedOptimizer] = weakref.WeakValueDictionary()
"""DistributedOptimizer that averages a parameter's gradient, by the parameter's id.

An id stays valid, because the DistributedOptimizer holds the parameter.
"""


class PackedGradients:
    """Gradients of one dtype that travel together."""

    def __init__(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        self.named = named
        self.gradients = packed((name, local_of(p).numel()) for name, p in named)
        self.dtype = of_gradient(named[0][1])
        """Type of the flat tensor."""
        self._flat: torch.Tensor | None = None
        self._packed: list[tuple[torch.Tensor, int] | None] = []
        """Gradients with their versions when they were packed; None for frozen parameters."""

    def pack(self) -> torch.Tensor:
        """Pack the gradients into one flat tensor. A single contiguous gradient is used unchanged.

        Frozen parameters get zeros.
        """
        self._packed, flat = [], []
        for name, parameter in self.named:
            if parameter.requires_grad:
                if parameter.grad is None:  # unused on this rank; other ranks may have used it
                    parameter.grad = _zeros(parameter)
                elif is_dtensor(parameter) and parameter.grad.placements != parameter.placements:
                    parameter.grad = parameter.grad.redistribute(placements=parameter.placements)
                gradient = parameter.grad
                if gradient.layout != torch.strided:
                    raise HipressError(f"{name!r} has a sparse gradient: use sparse=False")
                self._packed.append((gradient, gradient._version))
            else:
                gradient = _zeros(parameter)
                self._packed.append(None)
            # What is written to .data does not count as a new version.
            flat.append(self._flattened(name, local_of(gradient).data))
            if flat[-1].dtype != self.dtype:
                raise HipressError(
                    f"the gradient of {name!r} is {gradient.dtype}, and not {self.dtype} as when "
                    "the DistributedOptimizer was made"
                )
        if len(flat) == 1:
            self._flat = flat[0]
        elif self._flat is None:
            self._flat = torch.cat(flat)
        else:
            torch.cat(flat, out=self._flat)
        return self._flat

    def check_unchanged(self) -> None:
        """Check that gradients have not changed since they were packed."""
        for (name, parameter), was in zip(self.named, self._packed):
            now = parameter.grad
            if was is not None and (now is not was[0] or now._version != was[1]):
                raise RuntimeError(
                    f"the gradient of {name!r} was changed between backward() and step(), while it "
                    "was being averaged: call synchronize() before you clip or unscale gradients, "
                    "and before GradScaler.step()"
                )

    def unpack(self) -> None:
        """Copy the flat tensor's values to the gradients, except those of frozen parameters.

        An optimizer would move frozen parameters if they had gradients.
        """
        packed, self._packed = list(zip(self.named, self._packed)), []
        sizes = [gradient.count for gradient in self.gradients]
        for values, ((name, parameter), was) in zip(self._flat.split(sizes), packed):
            gradient = was and local_of(parameter.grad)
            if was is not None and values.data_ptr() != gradient.data_ptr():
                gradient.copy_(self._restored(name, values.view_as(gradient)))

    def _flattened(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        """Return the part of a gradient that travels, as a flat tensor."""
        return gradient.reshape(-1)

    def _restored(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Return a gradient in its shape from its received values."""
        return values


class DistributedOptimizer(Forwarding):
    """Optimizer wrapper that averages compressed gradients before ``optimizer`` uses them.

    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> optimizer = hipress.torch.DistributedOptimizer(
    ...     optimizer, named_parameters=model.named_parameters(), compression="onebit")
    >>> hipress.torch.broadcast_parameters(model.state_dict(), root_rank=0)

    Gradients travel in buckets of 25 MB, as in DDP. A bucket starts as soon as the backward pass
    has computed it, and ``step()`` waits for all. To clip or unscale gradients, call
    ``synchronize()`` first, also before ``GradScaler.step()``. A new DistributedOptimizer replaces
    one that has any of its parameters, see :meth:`detach`. Every other attribute is the wrapped
    optimizer's, and to isinstance() it is one of the same class.

    Args:
        named_parameters: as from ``model.named_parameters()``; all parameters of the optimizer
        compression: "auto", which chooses as :func:`hipress.torch.compress` does and gives its
            reasons in ``optimizer.compression.explain()``; a codec's name; a mapping with its name
            as "type" and its parameters; or a :class:`hipress.CompressionConfig`, which then sets
            the whole compression
        warmup_steps: see :func:`hipress.torch.compress`. A :class:`FrozenAdamW` with the same
            freeze_step leaves the first moment to the codec, if that has a momentum
        backward_passes_per_step: number of backward passes whose gradients are added up first
        op: "average" or "sum"
        group: process group; default: all ranks
        timeout: seconds to wait for another rank; default: the group's. With
            ``encode_on="device"``, NCCL's own timeout ends a step that hangs instead
        topology, min_size, plan, encode_on, shared_momentum: see :func:`hipress.torch.compress`

    Raises:
        ValueError: on every rank, if any rank's setting is wrong or they differ
    """

    _takes_shards = False
    """Whether parameters may be sharded inside a site."""
    _measures_topology = True
    """Whether topology "auto" is allowed."""
    _prepares_when_made = True
    """Whether the constructor calls :meth:`prepare`."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        compression: str | Mapping[str, Any] | CompressionConfig = "none",
        *,
        backward_passes_per_step: int = 1,
        op: str = "average",
        group: dist.ProcessGroup | None = None,
        topology: str | None = None,
        min_size: int = MIN_SIZE,
        warmup_steps: int = 0,
        plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None,
        timeout: float | None = None,
        encode_on: str = "host",
        shared_momentum: float = 0.0,
    ) -> None:
        named = pairs(named_parameters, "DistributedOptimizer")
        group = group_of_shards(named if self._takes_shards else (), group, type(self).__name__)
        named = [(name, p) for name, p in named if p.requires_grad]
        shards = [(name, local_of(p)) for name, p in named]
        self._site = Site(named)

        def make_settings() -> Settings:
            self._check_options()
            if self._takes_shards:
                check_shards(named, group, type(self).__name__)
            else:
                refuse_replicated(named)
                instead = "FSDP2 reduces its gradient, so use hipress.torch.compress_fsdp"
                refuse_sharded(named, type(self).__name__, instead)
            _check(optimizer, named, backward_passes_per_step, op)
            settings = Settings.of(
                compression,
                topology=topology,
                min_size=min_size,
                warmup_steps=warmup_steps,
                plan=plan,
                encode_on=encode_on,
                shared_momentum=shared_momentum,
            )
            if settings.any_momentum and isinstance(optimizer, FrozenAdamW):
                optimizer.check(settings)
            return settings

        settings, engine = start(
            lambda: self._site.agree(make_settings),
            group,
            shards,
            timeout,
            op=str(op),
            shard=str(self._site),
            optimizer=optimizer,
            allow_auto_topology=self._measures_topology,
        )
        self._optimizer, self._passes = optimizer, backward_passes_per_step
        self._known = {id(p) for _, p in named}
        every = parameters_of(optimizer.param_groups)
        self._unknown = [p for p in every if id(p) not in self._known]
        self.compression = self._new_compression(settings, engine, group, shards, op == "average")
        self._buckets = self._make_buckets(named)
        self._chooses = settings.type == AUTO
        if self._prepares_when_made:
            self.prepare()
        if settings.any_momentum and isinstance(optimizer, FrozenAdamW):
            optimizer.attach(self.compression)
        self._left = {name: backward_passes_per_step for name, _ in named}
        self._bucket_of = {
            name: number for number, of in enumerate(self._buckets) for name, _ in of.named
        }
        self._next = 0
        self._waiting: list[tuple[PackedGradients, torch.futures.Future]] = []
        self._began = self._has_had_gradients = self._steps_now = False
        self._synchronized = self._is_detached = False
        self._used: set[str] = set()
        """Names of the methods that were called, synchronize() or detach(), for the finalizer."""
        self._pending: str | None = None
        for before in [_owners.get(id(p)) for _, p in named]:
            if before is not None:  # two would reduce the same memory
                before.detach()
        self._hooks = [self._register(name, parameter) for name, parameter in named]
        if hasattr(optimizer, "register_step_pre_hook"):
            self._hooks.append(self._watch_steps(optimizer))
        _owners.update((id(p), self) for _, p in named)
        weakref.finalize(self, _drop, self._hooks, self._used).atexit = False

    def prepare(self) -> None:
        """Prepare all buckets while all ranks are here.

        Otherwise a backward pass could wait for other ranks to reach the same bucket, perhaps in
        step() only.
        """
        if not self._chooses:
            devices = [bucket.named[0][1].device for bucket in self._buckets]
            self.compression.prepare(
                [
                    (torch.empty(0, dtype=b.dtype, device=device), b.gradients, f"bucket {i}")
                    for i, (b, device) in enumerate(zip(self._buckets, devices))
                ]
            )

    def _new_compression(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        named: list[tuple[str, torch.nn.Parameter]],
        average: bool,
    ) -> TunedSynchronizer:
        """Return the compression of the settings. With type "auto" the ranks choose it."""
        if settings.type != AUTO:
            return TunedSynchronizer(settings, engine, group, named, average=average)
        shapes = {name: tuple(p.shape) for name, p in named}
        dtypes = {name: of_gradient(p) for name, p in named}
        where = device_of([p for _, p in named])
        optimizers = tuned_optimizers(settings, named, self._optimizer)
        hooks = MEANS if average else SUMS
        with current(where):
            feedback = optimizers.allow_feedback
            frontend = choose_method(
                settings, engine, group, where, shapes, dtypes, feedback, hooks
            )
        settings = frontend.settings_for()
        compression = TunedSynchronizer(settings, engine, group, named, average=average)
        compression.tune(frontend, optimizers)
        return compression

    def _check_options(self) -> None:
        """Check the arguments of a subclass. An error is raised on all ranks."""

    def _make_buckets(self, named: list[tuple[str, torch.nn.Parameter]]) -> list[PackedGradients]:
        """Group gradients of one dtype. The last layer's come first, in the order of all ranks."""
        found, size = [], 0
        for name, parameter in reversed(named):
            dtype = of_gradient(parameter)
            more = local_of(parameter).numel() * dtype.itemsize
            if not found or size + more > BUCKET_BYTES or dtype != of_gradient(found[-1][0][1]):
                found.append([])
                size = 0
            found[-1].append((name, parameter))
            size += more
        return [self._new_bucket(each) for each in found]

    def _new_bucket(self, named: list[tuple[str, torch.nn.Parameter]]) -> PackedGradients:
        return PackedGradients(named)

    def __reduce_ex__(self, protocol: int) -> Any:
        raise TypeError(
            "a DistributedOptimizer belongs to a process group and cannot be copied or saved "
            "whole: use its state_dict(), and that of its .compression"
        )

    def detach(self) -> None:
        """Stop averaging gradients, from the next backward pass on.

        ``step()`` of the present one is refused. A new DistributedOptimizer calls this on those
        that have any of its parameters.
        """
        for hook in self._hooks:
            hook.remove()
        self._is_detached = True
        self._used.add("detach")
        for key in [key for key in self._known if _owners.get(key) is self]:
            del _owners[key]

    def _register(self, name: str, parameter: torch.nn.Parameter) -> RemovableHandle:
        found = weakref.ref(self)  # parameters outlive it, and the user may have dropped it

        def hook(parameter: torch.Tensor) -> None:
            owner = found()
            if owner is not None:
                owner._accumulated(name, parameter, handle.id)

        handle = parameter.register_post_accumulate_grad_hook(hook)
        return handle

    def _watch_steps(self, optimizer: torch.optim.Optimizer) -> RemovableHandle:
        """Refuse steps of the wrapped optimizer that use gradients before they are averaged."""
        found = weakref.ref(self)

        def hook(*_: Any) -> None:
            owner = found()
            if owner is None or owner._steps_now:
                return
            passes = owner._passes
            if owner._waiting or any(left < passes for left in owner._left.values()):
                raise RuntimeError(
                    "step() was called on an optimizer that a DistributedOptimizer wraps, and "
                    "would use gradients that are not averaged: call step() of the "
                    "DistributedOptimizer, or its synchronize() before"
                )

        return optimizer.register_step_pre_hook(hook)

    def _accumulated(self, name: str, parameter: torch.Tensor, hook: int) -> None:
        """Record that a backward pass has added to a gradient, in the hook with this handle id."""
        self._settle()
        if parameter.grad is None:
            raise RuntimeError(
                f"a hook on {name!r} has taken its gradient before it was averaged: use it "
                "after step() or synchronize() instead"
            )
        if last_gradient_hook(parameter) == hook:
            self._ready(name)
            return
        self._pending = name  # until the user's own hooks after this one have also run
        queue_callback(self._settle)

    def _settle(self) -> None:
        """Count the gradient whose hooks had not all been called."""
        name, self._pending = self._pending, None
        if name is not None:
            self._ready(name)

    def _ready(self, name: str) -> None:
        """Count a backward pass of this gradient, and start buckets that are complete."""
        self._synchronized = False  # also if a GradScaler has left the step out
        self._has_had_gradients = True
        if self._bucket_of[name] < self._next:
            raise RuntimeError(
                f"{name!r} gets a gradient once more before step(), while it is being averaged: "
                f"backward_passes_per_step is {self._passes}, and one backward pass may be several "
                "to a parameter that reentrant checkpoints share. If the gradients so far are not "
                "for a step, as those of a generator's loss are not for its discriminator, call "
                "synchronize() and zero_grad()"
            )
        self._left[name] -= 1  # one that comes once more keeps its bucket waiting for step()
        while self._next < len(self._buckets):
            bucket = self._buckets[self._next]
            if any(self._left[name] for name, p in bucket.named if p.requires_grad):
                break
            self._start()

    def _start(self) -> None:
        bucket = self._buckets[self._next]
        what = f"bucket {self._next}"
        self._next += 1
        compression = self.compression
        try:
            flat = bucket.pack()
        except HipressError as error:  # all ranks must receive the error
            raise compression.engine.fail(error, what) from None
        if not self._began:
            self._began = True
            compression.begin_step()
        if compression.framework_method:
            future = compression.start_by_framework(
                FlatBucket(flat), bucket.gradients, flat.element_size()
            )
        else:
            future = compression.start_bucket(flat, bucket.gradients, what)
        self._waiting.append((bucket, future))

    def synchronize(self) -> None:
        """Wait until all gradients are averaged, for example to clip them before ``step()``.

        Raises:
            HipressError: if a rank has died or is silent
            RuntimeError: if gradients are not those of the backward pass any more, or some are not
                averaged; or after :meth:`detach`
        """
        self._used.add("synchronize")
        if self._is_detached:
            raise RuntimeError(
                "this DistributedOptimizer averages no gradients after detach(), which a new one "
                "with some of its parameters also calls: use the new one, or the wrapped optimizer"
            )
        if not self._synchronized:
            self._average()
        # Only now: a new step must not begin while gradients are being averaged.
        strangers = [p for p in self._unknown if p.requires_grad and p.grad is not None]
        if strangers:
            raise RuntimeError(
                f"a parameter of shape {tuple(strangers[0].shape)} has a gradient now, and is not "
                "among named_parameters that required one: make a new DistributedOptimizer, which "
                "takes this one's place"
            )

    def _average(self) -> None:
        """Start the remaining buckets, and wait for all."""
        waiting, self._waiting = self._waiting, []
        for bucket, _ in waiting:  # first: changes of gradients that are sent in place end the job
            bucket.check_unchanged()
        while self._next < len(self._buckets):
            self._start()
        waiting, self._waiting = waiting + self._waiting, []
        error = None
        try:
            for bucket, future in waiting:
                self.compression.wait(future)
                bucket.unpack()
            self.compression.poll()
        except Exception as failure:
            error = failure
        self._site.settle(error, (), self.compression.engine, "gradients")
        self.compression.step += 1
        self._synchronized, self._next, self._began = True, 0, False
        self._left = dict.fromkeys(self._left, self._passes)

    def step(self, closure: Any = None) -> Any:
        """Wait for the averages, unless ``synchronize()`` did, and make the optimizer's step.

        Args:
            closure: computes the gradients again, and returns the loss
        """
        if closure is None:
            # Before training, ranks need not make a step together that only creates states, and
            # it must not consume residuals.
            is_first = not (self._has_had_gradients or self._synchronized or self._optimizer.state)
            if not (is_first and only_makes_state(self._optimizer, self._site.all)):
                self.synchronize()
            self._synchronized = False
            return self._optimizer.step()

        def averaged() -> Any:
            loss = closure()
            self.synchronize()
            self._synchronized = False
            return loss

        self._steps_now = True
        try:
            return self._optimizer.step(averaged)
        finally:
            self._steps_now = False

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimizer.

        Those that require a gradient must be among ``named_parameters``.

        Raises:
            ValueError: if some are not
        """
        given = group["params"]
        params = [given] if isinstance(given, torch.Tensor) else list(given)
        if not isinstance(given, set):  # torch.optim raises the error
            group["params"] = params
        added = [p[1] if isinstance(p, tuple) else p for p in params]  # or with their names
        lacking = [p for p in added if p.requires_grad and id(p) not in self._known]
        if lacking:
            raise ValueError(
                f"a parameter of shape {tuple(lacking[0].shape)} is not among named_parameters: "
                "make a new DistributedOptimizer, of an optimizer that has it, which takes this "
                "one's place"
            )
        self._unknown += [p for p in added if id(p) not in self._known]
        self._optimizer.add_param_group(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients. Refused while they are being averaged."""
        if self._waiting:
            raise RuntimeError(
                "zero_grad() between backward() and step() would lose gradients that are being "
                "averaged: call step() or synchronize() first"
            )
        self._synchronized = False
        self._optimizer.zero_grad(set_to_none)


def _check(
    optimizer: torch.optim.Optimizer,
    named: list[tuple[str, torch.nn.Parameter]],
    passes: int,
    op: str,
) -> None:
    """Check the arguments of a DistributedOptimizer: ``named`` require a gradient."""
    if op not in ("average", "sum"):
        raise ValueError(f"op must be 'average' or 'sum', not {op!r}")
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step must be 1 or more, not {passes!r}")
    early = [name for name, p in named if is_stepped_in_backward(p)]
    if early:
        raise ValueError(
            f"parameter {early[0]!r} has an optimizer in the backward pass, which would use its "
            "gradient before it is averaged: use step() of this one instead"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "LBFGS decides by the loss, which each rank has of its own data, how often it computes "
            "gradients: use another optimizer"
        )
    names, owners = set(), {}
    for name, p in named:
        if name in names:
            raise ValueError(
                f"named_parameters has two parameters {name!r}: give them names of their own, such "
                "as 'encoder.weight'"
            )
        if id(p) in owners:
            raise ValueError(f"{name!r} and {owners[id(p)]!r} are one parameter: give it once")
        names.add(name)
        owners[id(p)] = name
    lacking = [p for p in parameters_of(optimizer.param_groups) if p.requires_grad]
    lacking = [p for p in lacking if id(p) not in owners]
    if lacking:
        raise ValueError(
            f"named_parameters lacks {len(lacking)} of the optimizer's parameters, the first of "
            f"shape {tuple(lacking[0].shape)}"
        )
    for name, parameter in named:
        before = _owners.get(id(parameter))
        if before is not None and before._waiting and not before.compression.engine.error:
            raise ValueError(
                f"another DistributedOptimizer is averaging the gradient of {name!r}: call its "
                "step() or synchronize() before you make a new one"
            )


def _drop(hooks: Iterable[RemovableHandle], used: set[str]) -> None:
    """Remove the hooks of a DistributedOptimizer to which the program has no reference left."""
    for hook in hooks:
        hook.remove()
    if not used:
        _log.warning(
            "a DistributedOptimizer was dropped before its first step, so gradients are not "
            "averaged: keep it and call its step(), as in optimizer = DistributedOptimizer(...)"
        )


def _zeros(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(parameter, dtype=of_gradient(parameter))
