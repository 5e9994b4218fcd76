"""Gathers of a sharded model's weights, which the autotuner measures, chooses and monitors.

How a mode gathers is in :mod:`hipress.torch.integrations.fsdp_gather`. Here is which one is used.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist

from hipress.autotune import choice
from hipress.autotune.controller import TuningController
from hipress.autotune.explanation import Explanation, number
from hipress.autotune.frontend import RankReductions, StepFrontend
from hipress.autotune.methods import GATHER_METHODS, Method
from hipress.autotune.quality_guard import MAX_WEIGHTS_ERROR
from hipress.torch.autotune.frontend import TensorStatistics
from hipress.torch.autotune.reductions import GroupReductions, raising_hipress_errors
from hipress.torch.executors.engine import ProcessGroupEngine

DIFFERENCES = "differences"
MEMORY_SHARE = 0.5
"""Share of the available memory that a replica may take. The optimizer's state and activations are
allocated later."""
_log = logging.getLogger("hipress")


class GatheredModule(NamedTuple):
    """Weights that are gathered together."""

    elements: int
    """Elements that a gather returns, with padding: a multiple of the ranks' number."""
    gathers: int
    """Gathers in a step by a mode that keeps no replica: before the forward pass, and perhaps
    before the backward pass."""
    trained: int
    """Elements that change in training."""


class GatherSample(ABC):
    """Some gathers by one method, which are repeated to be timed."""

    @abstractmethod
    def gather(self) -> None:
        """Gather the weights of all modules of the sample once, on all ranks together."""


class TunedGathers(ABC):
    """Gathers of a model whose method can be changed between steps."""

    engine: ProcessGroupEngine

    @abstractmethod
    def use(self, method: Method) -> None:
        """Gather by another method from now on, on all ranks between the same two gathers."""

    @abstractmethod
    def sample(self, method: Method, sizes: Sequence[int]) -> GatherSample:
        """Return gathers of modules with so many elements each, on all ranks together."""


class GatherFrontend(StepFrontend):
    """The gathers of a model, whose modules are in the order of their gathers.

    Args:
        step: function that returns the number of the step that begins
    """

    what = "gathers"
    rounded = "a module's weights", "theirs"
    max_error = MAX_WEIGHTS_ERROR
    keeps_error_feedback = True  # differences leave nothing that another method must send
    compares_results = False
    statistics = TensorStatistics

    def __init__(
        self,
        gathers: TunedGathers,
        group: dist.ProcessGroup,
        modules: Sequence[GatheredModule],
        step: Callable[[], int],
        log_rank: int,
        reductions: RankReductions | None = None,
    ) -> None:
        engine = gathers.engine
        self.gathers, self.engine, self.modules, self._step = gathers, engine, modules, step
        self.rank, self.num_ranks, self._log_rank = engine.rank, engine.world_size, log_rank
        self.reductions = reductions or GroupReductions(engine, group, torch.device("cpu"))
        self.elements = sum(module.elements for module in modules)
        self._samples: dict[tuple[str, int], tuple[GatherSample, int]] = {}
        self._in_training = False

    @property
    def log_rank(self) -> int:
        """Rank that decides whether this process writes the log."""
        return self._log_rank

    def begin_training(self) -> None:
        """Make later errors end all steps on all ranks."""
        self._in_training = True

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Enclose the measurement; free its memory at the end."""
        try:
            with raising_hipress_errors(self.engine, self._in_training):
                yield
        finally:
            self._samples = {}

    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Return the slowest rank's seconds of the gathers in a step, for a sample of modules.

        Returns:
            The seconds, and the elements of the sample.
        """
        if (method.name, size) not in self._samples:
            # Samples of one size only are in memory.
            self._samples = {key: s for key, s in self._samples.items() if key[1] == size}
            sizes = sample_sizes([m.elements for m in self.modules], size, self.num_ranks)
            self._samples[method.name, size] = self.gathers.sample(method, sizes), sum(sizes)
        sample, elements = self._samples[method.name, size]
        (slowest,) = self.reductions.max(self._seconds(method, sample))
        return slowest * self._repeats(method), elements

    def _seconds(self, method: Method, sample: GatherSample) -> float:
        """Gather a sample, and return this rank's seconds after all ranks have begun."""
        self.reductions.max(0.0)  # a barrier
        began = time.perf_counter()
        sample.gather()
        return time.perf_counter() - began

    def _repeats(self, method: Method) -> float:
        """Return how often a step gathers a model's average weight."""
        if method.type == DIFFERENCES:
            gathered = sum(m.trained for m in self.modules)
        else:
            gathered = sum(m.gathers * m.elements for m in self.modules)
        return gathered / self.elements

    @property
    def step(self) -> int:
        """Number of the step that begins."""
        return self._step()

    def use(self, method: Method) -> None:
        """Gather by a method from now on."""
        self.gathers.use(method)

    def residual_norm(self) -> float:
        """Return 0, as gathers have no residuals."""
        return 0.0

    def allows_feedback(self) -> bool | None:
        """Return False, as no gather uses error feedback."""
        return False

    def bytes_sent(self) -> int:
        """Return the bytes that this rank has sent so far."""
        return self.engine.member.stats()["bytes_sent"]


class GatherTuner:
    """The chosen method of a model's gathers, and what changes it in training, on one rank."""

    def __init__(self, frontend: GatherFrontend, made: choice.MethodChoice) -> None:
        self.explanation = made.explanation
        self._controller: TuningController | None = None
        if made.is_measured:
            frontend.begin_training()
            self._controller = TuningController(made, frontend, 0.0, tries=False, has_journal=False)
        self._method = made.method

    @property
    def is_measured(self) -> bool:
        """Whether the method was chosen by measurements, and may change."""
        return self._controller is not None

    @property
    def method(self) -> Method:
        """Method of the gathers from now on."""
        return self._method if self._controller is None else self._controller.method

    def begin_step(self) -> None:
        """Begin a step on all ranks together, between the gathers of two steps."""
        if self._controller is not None:
            self._controller.begin_step()

    def timer(self) -> Callable[[], None]:
        """Start to time a gather of this step, and return a function that ends it."""
        if self._controller is None:
            return lambda: None
        began, seconds = time.perf_counter(), self._controller.seconds
        return lambda: seconds.append(time.perf_counter() - began)

    def observe(self, rounded: torch.Tensor, weights: torch.Tensor) -> None:
        """Observe what this rank is about to encode, and the weights that it replaces.

        ``rounded`` are differences, or the weights.
        """
        guard = self._controller and self._controller.observer
        if guard:
            guard.add(rounding_squares(rounded, weights))


def rounding_squares(rounded: torch.Tensor, weights: torch.Tensor) -> tuple[float, float]:
    """Return the squares from which the guard computes the relative error of gathered weights.

    Gathers round to the nearest level. The mean square of that error is range^2 / 12, half of that
    of random rounding, which the guard assumes.
    """
    ranges, _ = TensorStatistics.squares([rounded])
    return float(ranges) / 2, TensorStatistics.square(weights)


def choose_gather(
    frontend: GatherFrontend, needed_bytes: float, available_bytes: float, may_round: bool = True
) -> GatherTuner:
    """Choose how weights are gathered, before the first step, on all ranks together.

    Args:
        frontend: the model's gathers, by PyTorch until a method is used
        needed_bytes: bytes of a replica of all weights on this rank, also of those that other
            gathers of the model have
        available_bytes: bytes of memory that are available to this rank
        may_round: whether weights may be rounded
    """
    allowed_bytes = MEMORY_SHARE * available_bytes
    # Not infinity: some reductions are sums.
    needed, available = frontend.reductions.max(needed_bytes, -min(allowed_bytes, 1e18))
    fits = needed <= -available
    methods = [
        method
        for method in GATHER_METHODS
        if (fits or method.type != DIFFERENCES) and (may_round or "bits" not in method.params)
    ]
    made = choice.choose(frontend, methods, False, frontend.elements, 1)
    if made.is_measured and may_round:
        made.explanation.history.append(_memory_sentence(needed, -available, fits))
        if not fits and frontend.rank == 0:
            _log.warning("%s", made.explanation.history[-1])
    return GatherTuner(frontend, made)


def _memory_sentence(needed: float, available: float, fits: bool) -> str:
    replica = f"a replica of all weights needs {_size(needed)} of host memory on each rank"
    if fits:
        return f"auto: {replica}, if differences are gathered"
    return (
        f"auto: no differences are gathered, for {replica}, and a rank may use {_size(available)}"
    )


def _size(count: float) -> str:
    """Return a number of bytes in MB or GB."""
    return f"{number(count / 1e6)} MB" if count < 1e9 else f"{number(count / 1e9)} GB"


def sample_sizes(sizes: Sequence[int], most: int, num_ranks: int) -> list[int]:
    """Return the elements of some modules, about ``most`` in all, as multiples of the ranks.

    Of a larger model it is every second (third, ...) module in order of size, and a module that is
    larger than this is cut to this size. It has at least one module.

    >>> sample_sizes([64, 8, 64], 100, 2)
    [64, 8]
    """
    every = max(1, math.ceil(sum(sizes) / most))
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    largest = max(num_ranks, most // num_ranks * num_ranks)
    return [min(sizes[i], largest) for i in sorted(order[::every])]


def no_gather(reason: str) -> Explanation:
    """Return the explanation of a model whose gathers are PyTorch's without a measurement."""
    return Explanation(f"auto: {GATHER_METHODS[0].name} of weights, for {reason}", what="gathers")
