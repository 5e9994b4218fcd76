"""Watches what error feedback does to a model's gradients where the ranks have chosen it.

A residual delays a part of each gradient. In some steps in a row each rank adds up a sample of its
gradients, and of the results. At their end one all-reduce of the sample gives what the results
should have been in sum. Two figures say how well training is served:

    error   |results - exact means| / |exact means|, of the sums over these steps
    share   |residuals| / |gradient|, of one rank in the last step: about how many steps the delay
            is, if gradients of one step are like those of the next

One step's error says nothing: what it leaves out may come in the next. The worst case that theory
allows (Karimireddy et al., ICML 2019, lemma 3) is a share of 2 sqrt(1 - d) / d for a codec that
keeps a part d of a vector's square.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

FIRST, EVERY, WINDOW = 10, 100, 8
"""The first step that is looked at, steps from the begin of one window to that of the next, and
steps of a window."""
SAMPLE = 1024
"""Elements of each gradient that are added up, at most."""


def sample_step(count: int) -> int:
    """The distance of the elements that are added up, of a gradient of ``count`` elements: an odd
    one, so that not all of them are of one column."""
    return -(-count // SAMPLE) | 1


class FeedbackGuard:
    """The figures of one rank, while one codec is used.

    Samples are float32, by the gradients' names, of every :func:`sample_step`-th element.
    """

    def __init__(self, step: int) -> None:
        """:param step: from which on the codec is used"""
        self._begin = step + FIRST
        self._own: dict[str, np.ndarray] = {}
        self._got: dict[str, np.ndarray] = {}
        self._square = 0.0

    def looks_at(self, step: int) -> bool:
        """Whether a step's gradients are to be given to :meth:`before` and :meth:`after`."""
        return self._begin <= step < self._begin + WINDOW

    def is_last(self, step: int) -> bool:
        """Whether a step is the window's last, of which :meth:`add_square` is to be called."""
        return step == self._begin + WINDOW - 1

    def is_over(self, step: int) -> bool:
        """Whether the step before this one was the window's last, and :meth:`sample` and
        :meth:`error` are to be called."""
        return step >= self._begin + WINDOW

    def before(self, samples: Mapping[str, np.ndarray]) -> None:
        """Adds samples of gradients that are about to be compressed."""
        _add(self._own, samples)

    def add_square(self, square: float) -> None:
        """Adds the sum of the squares of a gradient of the window's last step."""
        self._square += square

    def after(self, samples: Mapping[str, np.ndarray]) -> None:
        """Adds samples of the means that gradients have become, in any thread."""
        _add(self._got, samples)

    def sample(self) -> np.ndarray:
        """The sums of this rank's sample, whose mean over the ranks :meth:`error` takes;
        float32[n]."""
        return _joined(self._own)

    def error(self, exact: np.ndarray) -> float:
        """The error of the results' sums; 0 where there is nothing to compare.

        :param exact: the mean of all ranks' :meth:`sample`
        """
        got = _joined(self._got)
        if got.shape != exact.shape or not exact.size:
            return 0.0
        with np.errstate(all="ignore"):
            found = float(np.linalg.norm(got - exact) / np.linalg.norm(exact))
        return found if math.isfinite(found) else 0.0

    def share(self, residual_norm: float) -> float:
        """The norm of this rank's residuals over that of its gradient in the window's last step."""
        found = residual_norm / math.sqrt(self._square) if self._square > 0 else 0.0
        return found if math.isfinite(found) else 0.0

    def next_window(self) -> None:
        """Goes on to the next window."""
        self._begin += EVERY
        self._own, self._got, self._square = {}, {}, 0.0


def _add(sums: dict[str, np.ndarray], samples: Mapping[str, np.ndarray]) -> None:
    for name, part in samples.items():
        known = sums.get(name)
        sums[name] = part.copy() if known is None else known + part


def _joined(sums: dict[str, np.ndarray]) -> np.ndarray:
    if not sums:
        return np.zeros(0, np.float32)
    return np.concatenate([sums[name] for name in sorted(sums)])
