"""A compression that may choose by itself, on one rank of a process group."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hipress.secopa.explanation import Explanation
from hipress.torch.executors.gloo_threads import awaited
from hipress.torch.gradient import Gradient
from hipress.torch.synchronizer import Synchronizer
from hipress.torch.tuning.choice import Chosen, Hook
from hipress.torch.tuning.numbers import Numbers, maxima
from hipress.torch.tuning.optimizers import Optimizers
from hipress.tuning.feedback_guard import FeedbackGuard, sample_step
from hipress.tuning.follower import Follower
from hipress.tuning.guard import BUCKET, Guard
from hipress.tuning.ways import Way


class Following(Synchronizer):
    """A synchronizer that goes by a choice, which training may change."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._follower: Follower | None = None
        self._optimizers: Optimizers | None = None
        self._hooks: Mapping[str, Hook] = {}
        self._may_be_loaded = True
        self._explanation = Explanation(f"{self.settings}, as was asked for")

    def follow(self, chosen: Chosen, optimizers: Optimizers, results: bool = True) -> None:
        """Goes by a choice.

        :param optimizers: of the parameters that are compressed
        :param results: whether all of a gradient's results come to this rank
        """
        self._explanation, self._optimizers = chosen.choice.explanation, optimizers
        if chosen.choice.is_measured:
            front = _Front(self, chosen, optimizers, chosen.numbers, results)
            peers = self.engine.world_size
            rounds = 2 if results else 1  # a reduce-scatter sends half of what an all-reduce does
            raw = chosen.gradient_bytes * rounds * (peers - 1) / peers
            self._follower = Follower(chosen.choice, front, raw, tries=bool(chosen.hooks))
            self._hooks, self._numbers = chosen.hooks, chosen.numbers

    def forbid_feedback(self) -> None:
        """Has no way with error feedback taken, whatever the optimizer."""
        if self._optimizers is not None:
            self._optimizers.forbid()

    def explain_by(self, explanation: Explanation) -> None:
        """Has :meth:`explain` return this, of a choice that another one follows."""
        self._explanation = explanation

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way any more."""
        return self._follower is None or self._follower.is_settled

    def explain(self) -> Explanation:
        """Why gradients are synchronised as they are, and what was measured; to be printed."""
        return self._explanation

    def begin_step(self) -> None:
        """To be called on all ranks before a step's first bucket.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        if self._follower is None:
            return
        if self._may_be_loaded:
            # A rank without any goes the same way as those that have some.
            self._may_be_loaded = False
            self._follower.resume(maxima(self._numbers, float(self.has_to_send()))[0] > 0)
        self._follower.begin_step()

    def has_to_send(self) -> bool:
        """Whether residuals of another job, or view, are to be sent by this rank."""
        return bool(self.error_feedback.loaded or self.error_feedback.to_reshard)

    @property
    def own_way(self) -> Way | None:
        """The way of this step, if it is PyTorch's own: no codec runs."""
        if self._follower is None or self._follower.way.name not in self._hooks:
            return None
        return self._follower.way

    def start_bucket(
        self, flat: torch.Tensor, gradients: Sequence[Gradient], what: str
    ) -> torch.futures.Future:
        """Starts a bucket of this step by a codec, as :meth:`synchronize` does."""
        after = self._watch(flat, gradients)
        future = self._timed(self.synchronize(flat, gradients, what))
        if after is None:
            return future

        def watched(done: torch.futures.Future) -> torch.Tensor:
            after(done.value())
            return done.value()

        return future.then(awaited(watched))

    def wait(self, future: torch.futures.Future) -> None:
        """Waits for a bucket of :meth:`start_bucket`.

        :raises HipressError: in our words also where a callback has put others around them
        """
        try:
            future.wait()
        except Exception:
            self.poll()
            raise

    def start_own(
        self, bucket: Any, gradients: Sequence[Gradient], element_size: int
    ) -> torch.futures.Future:
        """Starts a bucket of this step by :attr:`own_way`.

        :param bucket: whose ``buffer()`` is the flat tensor
        """
        hook = self._hooks[self._follower.way.name]
        self.count_own(gradients, element_size)
        return self._timed(hook(self.collective.group, bucket))

    def count_own(self, gradients: Sequence[Gradient], element_size: int) -> None:
        """Counts what goes by :attr:`own_way`."""
        self._traffic.add(tuple(gradients), element_size, f"{self.own_way.name}, by auto")

    def _timed(self, future: torch.futures.Future) -> torch.futures.Future:
        """Takes the time of a bucket, from now until its results are there."""
        if self._follower is not None:
            ended = self.timer()
            future.add_done_callback(awaited(lambda _: ended()))
        return future

    def timer(self) -> Callable[[], None]:
        """What is to be called when the results of a bucket of this step, which starts now, are
        there."""
        began, seconds = time.perf_counter(), self._follower.seconds
        return lambda: seconds.append(time.perf_counter() - began)

    def _watch(
        self, flat: torch.Tensor, gradients: Sequence[Gradient]
    ) -> Callable[[torch.Tensor], None] | None:
        """Looks at a bucket of this step, which is about to go by a codec.

        :returns: what is to be called with the bucket's results, if anything
        """
        guard = None if self._follower is None else self._follower.guard()
        if guard is None:
            return None
        compressed = [g for g in gradients if self.compresses(g.name, g.count)]
        if isinstance(guard, Guard):
            for gradient in compressed:
                guard.add(_squares(flat, gradient))
            return None
        if guard.is_last(self.step):
            parts = [flat[piece].float() for g in compressed for piece in g.slices()]
            guard.add_square(sum(part.square().sum().item() for part in parts))
        if not self._follower.compares_results:
            return None
        guard.before(_samples(flat, compressed))
        scale = 1.0 if self.average else 1.0 / self.engine.world_size
        return lambda results: _after(guard, results, compressed, scale)

    def before_load(self, world_size: int, type: str) -> None:
        """Of a job in which type "auto" chose another way this rank's own state is enough, too."""
        if self._follower is not None and world_size == self.world_size:
            self._follower.set_up_for(type)

    def after_load(self) -> None:
        """Has the next step find out whether any rank has residuals to send."""
        super().after_load()
        self._may_be_loaded = True


class _Front:
    """What a follower asks of a process group."""

    sends_all_it_leaves = False  # PyTorch's own ways know nothing of residuals

    def __init__(
        self, of: Following, chosen: Chosen, optimizers: Optimizers, numbers: Numbers,
        results: bool,
    ) -> None:  # fmt: skip
        self._of, self._chosen, self._optimizers = of, chosen, optimizers
        self.compares_results, self.rank = results, of.rank
        self.begin_maxima, self.end_maxima = numbers.begin_maxima, numbers.end_maxima
        self.mean = numbers.mean

    @property
    def step(self) -> int:
        return self._of.step

    def use(self, way: Way) -> None:
        self._of.replace_codec(self._chosen.settings(way))

    def residual_norm(self) -> float:
        total = 0.0
        for state in self._of.error_feedback.states.values():
            residual = state.state_dict()["states"].get("residual")
            if residual is not None:
                flat = np.asarray(residual).reshape(-1)
                total += float(np.dot(flat, flat))
        return math.sqrt(total)

    def allows_feedback(self) -> bool | None:
        return self._optimizers.allow_feedback

    def bytes_sent(self) -> int:
        return self._of.engine.member.stats()["bytes_sent"]


def _squares(flat: torch.Tensor, gradient: Gradient) -> torch.Tensor:
    """As :func:`hipress.tuning.guard.squares`, where the gradient is: float32[2]."""
    found = flat.new_zeros(2, dtype=torch.float32)
    for piece in gradient.slices():
        values = flat[piece].float()
        whole = values.numel() // BUCKET * BUCKET
        for rows in (values[:whole].view(-1, BUCKET), values[whole:].view(1, -1)):
            if rows.numel():
                low, high = rows.aminmax(dim=1)
                found[0] += (high - low).square().sum() * rows.shape[1]
        found[1] += values.square().sum()
    return found


def _samples(flat: torch.Tensor, gradients: Sequence[Gradient]) -> dict[str, np.ndarray]:
    return {
        g.name: flat[g.offset : g.offset + g.count : sample_step(g.count)].float().cpu().numpy()
        for g in gradients
    }


def _after(
    guard: FeedbackGuard, flat: torch.Tensor, gradients: Sequence[Gradient], scale: float
) -> None:
    guard.after({name: scale * part for name, part in _samples(flat, gradients).items()})
