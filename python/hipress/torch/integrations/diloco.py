"""DiLoCo and Local SGD for PyTorch: hooks of the inner optimizers, and type "auto".

The algorithm is in :mod:`hipress.local_sgd`, its operations on tensors in :mod:`.outer`.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from hipress.autotune.outer_steps import OuterSchedule, OuterStepController, fragment_counts
from hipress.base.checked import is_count
from hipress.config import AUTO, CompressionConfig
from hipress.local_sgd.fragment_scheduler import DiLoCoMethods, FragmentScheduler
from hipress.local_sgd.outer import Fragment, OuterWeights
from hipress.local_sgd.schedule import Schedule
from hipress.torch.autotune.frontend import OuterGroupFrontend
from hipress.torch.dtypes import local_of
from hipress.torch.executors.staging import device_of
from hipress.torch.integrations.broadcast import broadcast_parameters
from hipress.torch.integrations.checks import only_makes_state, refuse_replicate
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.integrations.outer import (
    Model,
    Named,
    OuterOptimizers,
    TensorAverage,
    TensorWeights,
    check,
    connect,
    frozen_that_differ,
    names_of,
    parameters_in,
    parts_of,
)
from hipress.torch.integrations.site import (
    Site,
    SiteReductions,
    check_shards,
    group_of_shards,
)
from hipress.torch.settings import MIN_SIZE, Settings

Optimizers = Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]]
_owners: weakref.WeakValueDictionary[int, DiLoCo] = weakref.WeakValueDictionary()
"""DiLoCo that counts an inner optimizer's steps, by the optimizer's id."""


class DiLoCo(DiLoCoMethods):
    """Synchronization of weights every ``sync_every`` steps of the inner optimizer (DiLoCo).

    >>> inner = torch.optim.AdamW(model.parameters(), lr=4e-4)
    >>> outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    >>> diloco = hipress.torch.DiLoCo(
    ...     model, inner, outer, sync_every=30, compression="sparseloco")
    >>> for inputs, targets in batches:
    ...     loss_of(model, inputs, targets).backward()
    ...     inner.step()
    ...     inner.zero_grad()
    >>> diloco.finish()

    Steps of the inner optimizer count from the constructor on, until a new DiLoCo takes the same
    optimizer or :meth:`detach` is called. As a context manager, ``with DiLoCo(...):``, it calls
    :meth:`finish` and :meth:`detach` at the end of the block.

    All ranks begin with the first rank's parameters. Buffers, such as batch normalization's running
    means, remain separate on each rank. Parameters that are frozen on all ranks become the ranks'
    mean at their next synchronization, and do not change after that. Parameters that are unfrozen
    later are refused.

    If the ranks of a site average gradients in each step, by DistributedDataParallel on the site's
    process group, ``group`` has one rank of each site.

    Parameters may be sharded over the ranks of a site, by FSDP2 or tensor parallelism. Each rank
    then synchronizes its own shards with the ranks of ``group``, which hold the same shards at
    other sites. Outer weights and states are local tensors of the shards' shapes, ``min_size``
    counts the elements of a shard, and a codec encodes shards. All ranks of a site use the result
    of an outer step, or none of them does.

    Args:
        model_fragments: the model, or modules that together are synchronized. Each module then
            travels at a separate step.
        inner_optimizer: optimizer of any class, whose steps are counted. Or several, each for some
            of the parameters, such as Muon for matrices and AdamW for the remaining ones. A step
            ends when all have made theirs.
        outer_optimizer: optimizer of the same parameters, or one for each fragment. It gets float32
            copies of the parameters instead, which are the same on all ranks of ``group``. For
            sharded parameters it must treat each element alone, as SGD and AdamW do
        sync_every: H, inner steps between two synchronizations of the same weights
        fragments: number of parts of about equal size into which the model is divided; default: 1,
            or the choice of type "auto"
        fragment_sync_delay: inner steps that a fragment may travel, fewer than ``sync_every``; with
            0 training waits for it; default: 0, or the choice of type "auto"
        fragment_update_alpha: share of a rank's own weights that remains when a fragment has
            returned, in [0, 1)
        early_steps: inner steps in the beginning, such as a fifth of all. In these, all weights
            become the ranks' mean every ``early_sync_every`` steps (Lin et al., post-local SGD,
            arXiv:1808.07217)
        early_sync_every: inner steps between two of these means
        backup_device: device of the float32 copies; default: host memory
        compression: "auto" (if ``group`` is all ranks, or parameters are sharded), which measures
            after some inner steps, chooses, and gives its reasons in ``compression.explain()``; a
            codec's name; a mapping with its name as "type" and its parameters; or a
            :class:`hipress.CompressionConfig`
        group: process group; default: all ranks, or the ranks that hold the same shards of the
            model, one of each site
        topology, min_size: see :func:`hipress.torch.compress`
        timeout: seconds to wait for another rank; default: the group's

    Raises:
        ValueError: on every rank, if any rank's setting is wrong or they differ
    """

    def __init__(
        self,
        model_fragments: Model,
        inner_optimizer: Optimizers,
        outer_optimizer: Optimizers,
        sync_every: int,
        *,
        fragments: int | None = None,
        fragment_sync_delay: int | None = None,
        fragment_update_alpha: float = 0.0,
        early_steps: int = 0,
        early_sync_every: int = 5,
        backup_device: torch.device | str | None = None,
        compression: str | Mapping[str, Any] | CompressionConfig = "none",
        group: dist.ProcessGroup | None = None,
        topology: str | None = None,
        min_size: int = MIN_SIZE,
        timeout: float | None = None,
    ) -> None:
        every = parameters_in(model_fragments)
        group = group_of_shards(every, group, type(self).__name__)
        number, delay = 1 if fragments is None else fragments, fragment_sync_delay or 0
        parts = parts_of(model_fragments, number if is_count(number) else 1)
        named = [pair for part in parts for pair in part]
        single = isinstance(outer_optimizer, torch.optim.Optimizer)
        outer_optimizers = [outer_optimizer] * len(parts) if single else list(outer_optimizer)
        several = isinstance(inner_optimizer, Sequence)
        self._inner = list(inner_optimizer) if several else [inner_optimizer]
        self._site = Site(every)

        def make_schedule() -> Schedule:
            return Schedule(sync_every, early_steps, early_sync_every, delay, fragment_update_alpha)

        def make_settings() -> Settings:
            check_shards(every, group, "DiLoCo")
            check(parts, outer_optimizers)
            _check_gradients(model_fragments, self._inner, group)
            _check_before(self._inner)
            make_schedule().check_fragments(number)
            make_schedule().check_fragments(len(parts))
            if not self._inner:
                raise ValueError("there is no inner optimizer")
            for inner in self._inner:
                if not hasattr(inner, "register_step_post_hook"):
                    raise ValueError(f"{type(inner).__name__} has no register_step_post_hook()")
            settings = Settings.of(compression, topology=topology, min_size=min_size)
            if settings.encode_on != "host":
                raise ValueError("DiLoCo encodes in host memory: leave encode_on out")
            is_part = dist.get_world_size(group) < dist.get_world_size()
            if settings.type == AUTO and is_part and not self._site.is_sharded:
                raise ValueError(
                    "type auto chooses in each group for itself, and the ranks of a site must "
                    "choose alike: name a type where group is not all ranks"
                )
            return settings

        schedule = f"every {sync_every}, early {early_steps} every {early_sync_every}, "
        schedule += f"delay {fragment_sync_delay}, {[len(p) for p in parts]}"
        settings, self.compression = connect(
            lambda: self._site.agree(make_settings, schedule=schedule),
            group,
            named,
            timeout,
            schedule=schedule,
            shard=str(self._site),
        )
        unlike = named + frozen_that_differ(model_fragments, group)
        broadcast_parameters(unlike, dist.get_global_rank(group, 0), group)
        self._hooks: list[RemovableHandle] = []
        self._steps = [0] * len(self._inner)
        self._weights = TensorWeights(named, self._inner, backup_device, self._site)
        self._outer = OuterWeights(
            names_of(parts),
            self._weights,
            OuterOptimizers(outer_optimizers, self._weights),
            TensorAverage(backup_device, self.compression, self._site),
        )
        self._scheduler = FragmentScheduler(self._outer, make_schedule(), self._after_outer_step)
        self._model, self._tuner = model_fragments, None
        if settings.type == AUTO:
            may_cut = fragments is None and single and isinstance(model_fragments, torch.nn.Module)
            numbers = [n for n in fragment_counts(sync_every) if len(self._cut(n)) == n]
            self._frontend = self._new_frontend(settings, named, backup_device)
            counts = numbers if may_cut else [len(parts)]
            self._tuner = OuterStepController(
                self._frontend, sync_every, counts, fragment_sync_delay
            )
            self.compression.explain_by(self._tuner.explanation)
        self._attach()

    def _new_frontend(
        self, settings: Settings, named: Named, device: torch.device | str | None
    ) -> OuterGroupFrontend:
        """Return the front end of type "auto". All shards of a site get the same choice."""
        compression, shards = self.compression, [(name, local_of(p)) for name, p in named]
        if not self._site.is_sharded:
            return OuterGroupFrontend(settings, compression, shards, device, self._cut)
        group = compression.collective.group
        where = device_of([p for _, p in shards])
        reductions = SiteReductions(self._site, compression.engine, group, where)
        shapes = self._site.largest_shards(named)
        return OuterGroupFrontend(
            settings, compression, shards, device, self._cut, reductions, shapes, dist.get_rank()
        )

    def _cut(self, fragments: int) -> list[Named]:
        """Return the parts of the model, if these are so many."""
        return parts_of(self._model, fragments)

    @property
    def step(self) -> int:
        """Number of inner steps so far."""
        return self._scheduler.step

    @property
    def sync_every(self) -> int:
        """Number of inner steps between two outer steps of the same weights."""
        return self._scheduler.schedule.sync_every

    @staticmethod
    def sparseloco(model_fragments: Model, inner_optimizer: Optimizers, **more: Any) -> DiLoCo:
        """Return a DiLoCo with the settings of SparseLoCo.

        Sarfi et al., "Communication efficient LLM pre-training with SparseLoCo", 2025
        (arXiv:2508.15706): H = 30, 64 elements of 4096 in 2 bits each, and error feedback that
        decays by 0.95. The outer step has length 1 and no momentum, which error feedback replaces.
        Covenant-72B had the same H, share and decay (Lidin et al., 2026, arXiv:2603.08163).

        >>> with hipress.torch.DiLoCo.sparseloco(model, inner):
        ...     train()

        The 64 of 4096 are the largest of a whole parameter, not of each block. Parameters of 64
        elements and more are compressed: uncompressed, the biases and norms of a GPT of width 512
        would add half of the bytes.

        Args:
            model_fragments: see :class:`DiLoCo`
            inner_optimizer: see :class:`DiLoCo`
            more: other arguments of :class:`DiLoCo`
        """
        compression = {"type": "sparseloco", "ratio": 64 / 4096, "decay": 0.95}
        own = {"sync_every": 30, "compression": compression, "min_size": 64, **more}
        return _preset(model_fragments, inner_optimizer, own, lr=1.0)

    @staticmethod
    def streaming(model_fragments: Model, inner_optimizer: Optimizers, **more: Any) -> DiLoCo:
        """Return a DiLoCo with the settings of Streaming DiLoCo.

        Douillard et al., "Streaming DiLoCo with overlapping communication", 2025
        (arXiv:2501.18512): H = 100, fragments that travel during one inner step, half of a rank's
        own weights kept (alpha = 0.5), and 4 bits per element. The paper's 24 layers are eight
        fragments of three layers each. For another number, set ``fragments`` or pass a list of
        modules.

        The paper's 4 bits are floats; here they are the levels of ``maxmin``. Its fragments have
        every eighth layer; here they are neighbors. The outer step is that of DiLoCo
        (arXiv:2311.08105), of length 0.7 with Nesterov momentum of 0.9.

        Args:
            model_fragments: see :class:`DiLoCo`
            inner_optimizer: see :class:`DiLoCo`
            more: other arguments of :class:`DiLoCo`
        """
        own = {
            "sync_every": 100,
            "fragment_sync_delay": 1,
            "fragment_update_alpha": 0.5,
            "compression": {"type": "maxmin", "bits": 4},
            **more,
        }
        if isinstance(model_fragments, torch.nn.Module):
            own.setdefault("fragments", 8)
        return _preset(model_fragments, inner_optimizer, own, lr=0.7, momentum=0.9, nesterov=True)

    def _attach(self) -> None:
        """Count the inner optimizers' steps from now on. Their present hooks run first."""
        for inner in self._inner:
            before = _owners.get(id(inner))
            if before is not None:  # otherwise both would synchronize the same weights
                before.detach()
        self._hooks = [
            inner.register_step_post_hook(partial(self._after_inner_step, number))
            for number, inner in enumerate(self._inner)
        ]
        _owners.update((id(inner), self) for inner in self._inner)
        if self._tuner:
            self._tuner.resume()

    def detach(self) -> None:
        """Stop counting inner steps. Training then continues without synchronization.

        Synchronizations of fragments that have begun are not stopped; see :meth:`finish`.
        """
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        for inner in self._inner:
            if _owners.get(id(inner)) is self:
                del _owners[id(inner)]

    def __enter__(self) -> DiLoCo:
        self._weights.check()
        _check_before([inner for inner in self._inner if _owners.get(id(inner)) is not self])
        self._attach()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()
        if error is None:
            self.finish()

    @property
    def is_pending(self) -> bool:
        """Whether fragments have results that were not applied yet; see :meth:`finish`."""
        return any(fragment.is_pending for fragment in self._outer.fragments)

    def _after_inner_step(self, number: int, *_: Any) -> None:
        """Count an inner step when the last of the inner optimizers has made it."""
        if not self._steps[number] and only_makes_state(self._inner[number], self._site.all):
            return
        before = min(self._steps)
        self._steps[number] += 1
        if min(self._steps) == before:
            return
        schedule = self._tuner and self._tuner.after_step(self.step + 1)
        if schedule:
            self._scheduler.finish()
            self._use(schedule)
        self._scheduler.advance()
        self.compression.poll()
        if self._tuner:
            self._tuner.resume()

    def _use(self, schedule: OuterSchedule) -> None:
        """Use the choice of all ranks, while nothing is pending."""
        self._weights.check()
        self._frontend.use(self._tuner.method)
        if schedule.fragments != len(self._outer.fragments):
            self._outer.split(names_of(self._cut(schedule.fragments)))
        self._scheduler.set_delay(schedule.delay)
        self._tuner.begin_schedule()

    def _after_outer_step(self, fragment: Fragment, average: bool) -> None:
        # An average has all fragments in flight at once, and they wait for each other.
        if self._tuner and fragment.seconds and not average:
            self._tuner.record_travel(fragment.number, fragment.seconds)

    def state_dict(self) -> dict[str, Any]:
        """Return the outer weights and optimizers, pending fragments, and residuals.

        Model and inner optimizer are not included. Each rank saves its own state, with
        ``torch.save()``. Tensors of sharded parameters are those of the rank's shards.
        ``torch.distributed.checkpoint.load()`` restores only entries that a new DiLoCo has, without
        the outer optimizer's momentum, and DiLoCo refuses such a state.
        """
        found = {"step": self.step, **self._outer.state_dict()}
        if self._site.is_sharded:
            found["shard"] = str(self._site)
        if self._tuner:
            found["auto"] = self._tuner.state_dict()
        # After the outer weights' state, which has waited for pending fragments.
        return {
            **found,
            "tensors": _count_tensors(found),
            "compression": self.compression.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state, in a DiLoCo that was made before a rank's own weights were loaded.

        With another number of ranks, the state must hold the residuals of all ranks, see
        :mod:`hipress.torch.state.checkpoint`.

        Raises:
            ValueError: If it is from another model or another shard, or lacks tensors that were
                saved.
        """
        shard = state.get("shard", str(Site()))
        if shard != str(self._site):
            raise ValueError(
                f"the state is of shard {shard}, and this rank has shard {self._site}: load the "
                "state of a rank with the same shard"
            )
        lost = state.get("tensors", 0) - _count_tensors(state)
        if lost > 0:
            raise ValueError(
                f"the state lacks {lost} tensors of the outer optimizer that were saved: "
                "torch.distributed.checkpoint.load() leaves them out; save each rank's state with "
                "torch.save()"
            )
        schedule = self._tuner and self._tuner.load_state_dict(state.get("auto", {}))
        if schedule:
            self._use(schedule)
        self._outer.load_state_dict(state)
        self.compression.load_state_dict(state["compression"])
        self._scheduler.step = state["step"]


class LocalSGD(DiLoCo):
    """Average of the weights of all ranks every ``sync_every`` steps (Stich, ICLR 2019).

    >>> with hipress.torch.LocalSGD(model, optimizer, sync_every=8):
    ...     train()

    Args:
        model: See :class:`DiLoCo`.
        optimizer: The inner optimizer.
        sync_every: Number of inner steps between two averages.
        more: Other arguments of :class:`DiLoCo`.
    """

    def __init__(
        self, model: Model, optimizer: torch.optim.Optimizer, sync_every: int, **more: Any
    ) -> None:
        parameters = [p for part in parts_of(model, 1) for _, p in part]
        # A step of length 1 against the mean of (old - new weights) ends at the new weights' mean.
        super().__init__(model, optimizer, torch.optim.SGD(parameters, lr=1.0), sync_every, **more)


def _count_tensors(state: object) -> int:
    """Return the number of tensors in a state of DiLoCo, without its compression's state."""
    if isinstance(state, torch.Tensor):
        return 1
    if isinstance(state, Mapping):
        return sum(_count_tensors(v) for key, v in state.items() if key != "compression")
    return sum(map(_count_tensors, state)) if isinstance(state, (list, tuple)) else 0


def _check_gradients(
    model: Model, optimizers: Sequence[torch.optim.Optimizer], group: dist.ProcessGroup
) -> None:
    """Refuse gradients that several ranks of ``group`` average: their weights would be the same."""
    ours = set(dist.get_process_group_ranks(group))

    def is_shared(other: dist.ProcessGroup) -> bool:
        return len(ours.intersection(dist.get_process_group_ranks(other))) > 1

    for part in [model] if isinstance(model, torch.nn.Module) else model:
        refuse_replicate(part.modules(), "DiLoCo")
        wrapped = [m for m in part.modules() if isinstance(m, DistributedDataParallel)]
        if any(is_shared(each.process_group) for each in wrapped):
            raise ValueError(
                "the model is wrapped in DistributedDataParallel, which averages gradients of "
                "ranks of DiLoCo's group in each step: give DiLoCo the unwrapped model, or wrap "
                "it over the ranks of one site and give DiLoCo a group of one rank of each site"
            )
    for optimizer in optimizers:
        own = isinstance(optimizer, DistributedOptimizer)
        if own and is_shared(optimizer.compression.collective.group):
            raise ValueError(
                f"the inner optimizer is a {type(optimizer).__name__}, which averages gradients of "
                "ranks of DiLoCo's group in each step: give DiLoCo a torch.optim.Optimizer"
            )


def _check_before(optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Refuse to replace a DiLoCo that has not finished the synchronization of its fragments."""
    for inner in optimizers:
        before = _owners.get(id(inner))
        if before is not None and before.is_pending and not before.compression.engine.error:
            raise ValueError(
                "another DiLoCo of the same inner optimizer has pending fragments: call its "
                "finish() before another one takes the optimizer over"
            )


def _preset(model: Model, inner: Optimizers, arguments: dict[str, Any], **outer: Any) -> DiLoCo:
    """Return a DiLoCo with these arguments.

    If they have no outer optimizer, it is SGD with the arguments ``outer``.
    """
    if "outer_optimizer" not in arguments:
        parameters = [p for part in parts_of(model, 1) for _, p in part]
        arguments["outer_optimizer"] = torch.optim.SGD(parameters, **outer)
    return DiLoCo(model, inner, **arguments)
