"""Synchronizer whose method the autotuner chooses, on one rank of a process group."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from hipress.autotune.controller import TuningController
from hipress.autotune.explanation import Explanation
from hipress.autotune.frontend import RankReductions
from hipress.autotune.methods import Method
from hipress.torch.autotune.frontend import GroupFrontend
from hipress.torch.autotune.hooks import Hook
from hipress.torch.autotune.optimizers import TunedOptimizers
from hipress.torch.executors.gloo_threads import awaited
from hipress.torch.gradient import Gradient
from hipress.torch.synchronizer import Synchronizer


class TunedSynchronizer(Synchronizer):
    """Synchronizer that uses a chosen method, if there is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._controller: TuningController | None = None
        self._optimizers: TunedOptimizers | None = None
        self._reductions: RankReductions | None = None
        self._hooks: Mapping[str, Hook] = {}
        self._may_be_loaded = True
        self._waited = 0.0
        """Seconds that the last step has waited for results."""
        self._explanation = Explanation(f"{self.settings}, as was asked for")

    def tune(
        self, frontend: GroupFrontend, optimizers: TunedOptimizers, results: bool = True
    ) -> None:
        """Use the choice of a front end, and change it in training.

        ``results`` is whether this rank receives all of a gradient's results.
        """
        self._explanation, self._optimizers = frontend.choice.explanation, optimizers
        if frontend.choice.is_measured:
            frontend.attach(self, optimizers, results)
            peers = self.engine.world_size
            # A reduce-scatter sends half of an all-reduce.
            transfers = (2 if results else 1) * (peers - 1) / peers
            raw = frontend.elements * frontend.dtype.itemsize * transfers
            tries = bool(frontend.hooks)
            self._controller = TuningController(frontend.choice, frontend, raw, tries=tries)
            self._hooks, self._reductions = frontend.hooks, frontend.reductions

    def forbid_feedback(self) -> None:
        """Do not use methods with error feedback with any optimizer."""
        if self._optimizers is not None:
            self._optimizers.forbid()

    def explain_by(self, explanation: Explanation) -> None:
        """Set the result of :meth:`explain`, for a choice that another object makes."""
        self._explanation = explanation

    def explain_gathers(self, explanation: Explanation) -> None:
        """Add the reasons for how weights are gathered to the result of :meth:`explain`."""
        self._explanation.gathers = explanation

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another method."""
        return self._controller is None or self._controller.is_settled

    def explain(self) -> Explanation:
        """Return the reasons for the compression, with the measurements, to be printed."""
        return self._explanation

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return this rank's numbers for a logger: plain floats by name.

        A name is missing if its number is not known. Bytes count from the start of training.

        - ``bytes``: of gradients, before compression
        - ``compressed_bytes``: of those gradients that were compressed
        - ``gathered_bytes``: of weights that this rank has sent in gathers
        - ``sent_bytes``: sent over HiPress's connections, by all models of the process group.
          PyTorch's own all-reduces are not counted
        - ``ratio``: bytes that those connections carried before compression, over those after it
        - ``waited_ms``: milliseconds that the last step's backward pass has waited for results. 0
          if the method is PyTorch's own, or if the GPU waits
        - ``residual_norm``: 2-norm of this rank's residuals. Computing it reads all of them
        - ``relative_error``: norm of the compression error over that of the gradient, as type
          "auto" last measured it
        - ``method/NAME``: 1 for the present method

        Args:
            prefix: text before each name, such as "hipress/"
        """
        stats, traffic = self.stats(), self.engine.member.stats()
        found = {
            "bytes": float(stats.compressed + stats.uncompressed),
            "compressed_bytes": float(stats.compressed),
            **({"gathered_bytes": float(stats.gathered)} if stats.gathered else {}),
            "sent_bytes": float(traffic["pushed_bytes"]),
            "waited_ms": 1000 * self._waited,
            "residual_norm": self.error_feedback.norm(),
        }
        if traffic["pushed_bytes"]:
            found["ratio"] = traffic["pushed_raw_bytes"] / traffic["pushed_bytes"]
        method = str(self.settings.type)
        if self._controller is not None:
            method = self._controller.method.name
            figures = self._controller.figures
            if "error" in figures or "rounding" in figures:
                found["relative_error"] = figures.get("error", figures.get("rounding"))
        found[f"method/{method}"] = 1.0
        return {f"{prefix}{name}": float(value) for name, value in found.items()}

    def begin_step(self) -> None:
        """Begin a step on all ranks, before its first bucket."""
        self._waited = 0.0
        if self._controller is None:
            return
        if self._may_be_loaded:
            # A rank without residuals uses the method of the ranks that have some.
            self._may_be_loaded = False
            (waiting,) = self._reductions.max(float(self.has_to_send()))
            self._controller.resume(waiting > 0)
        self._controller.begin_step()

    def has_to_send(self) -> bool:
        """Return whether this rank has residuals of another job or view."""
        return bool(self.error_feedback.loaded or self.error_feedback.to_reshard)

    @property
    def framework_method(self) -> Method | None:
        """Method of this step, if it is PyTorch's own."""
        if self._controller is None or self._controller.method.name not in self._hooks:
            return None
        return self._controller.method

    def start_bucket(
        self, flat: torch.Tensor, gradients: Sequence[Gradient], what: str
    ) -> torch.futures.Future:
        """Start a bucket of this step with a codec, as :meth:`synchronize` does."""
        after = self._observe(flat, gradients)
        future = self._timed(self.synchronize(flat, gradients, what))
        if after is None:
            return future

        def observed(done: torch.futures.Future) -> torch.Tensor:
            after(done.value())
            return done.value()

        return future.then(awaited(observed))

    def wait(self, future: torch.futures.Future) -> None:
        """Wait for a bucket, and raise its original error also if a callback has wrapped it."""
        began = time.perf_counter()
        try:
            future.wait()
        except Exception:
            self.poll()
            raise
        finally:
            self._waited += time.perf_counter() - began

    def start_by_framework(
        self, bucket: Any, gradients: Sequence[Gradient], element_size: int
    ) -> torch.futures.Future:
        """Start a bucket of this step with :attr:`framework_method`."""
        hook = self._hooks[self._controller.method.name]
        self.count_by_framework(gradients, element_size)
        return self._timed(hook(self.collective.group, bucket))

    def count_by_framework(self, gradients: Sequence[Gradient], element_size: int) -> None:
        """Count gradients that use :attr:`framework_method`."""
        self._traffic.add(tuple(gradients), element_size, f"{self.framework_method.name}, by auto")

    def _timed(self, future: torch.futures.Future) -> torch.futures.Future:
        """Time a bucket from now until its results are there."""
        if self._controller is not None:
            ended = self.timer()
            future.add_done_callback(awaited(lambda _: ended()))
        return future

    def timer(self) -> Callable[[], None]:
        """Start to time a bucket of this step, and return a function that ends it."""
        began, seconds = time.perf_counter(), self._controller.seconds
        return lambda: seconds.append(time.perf_counter() - began)

    def _observe(
        self, flat: torch.Tensor, gradients: Sequence[Gradient]
    ) -> Callable[[torch.Tensor], None] | None:
        """Observe a bucket before compression. Return a function for its results, or None."""
        observer = None if self._controller is None else self._controller.observer
        if observer is None:
            return None
        compressed = [g for g in gradients if g.count and self.compresses(g.name, g.count)]
        observer.before((g.name, [flat[piece] for piece in g.slices()]) for g in compressed)
        if not observer.compares_results:
            return None
        scale = 1.0 if self.average else 1.0 / self.engine.world_size

        def after(results: torch.Tensor) -> None:
            observer.after(((g.name, results[next(g.slices())]) for g in compressed), scale)

        return after

    def before_load(self, world_size: int, type: str) -> None:
        """See :class:`hipress.torch.state.saved.Stateful`.

        Use the method of the saved state, so that this rank's own state is sufficient if type
        "auto" chose another method.
        """
        if self._controller is not None and world_size == self.world_size:
            self._controller.prepare_for(type)

    def after_load(self) -> None:
        """Make the next step check whether any rank has residuals to send."""
        super().after_load()
        self._may_be_loaded = True
