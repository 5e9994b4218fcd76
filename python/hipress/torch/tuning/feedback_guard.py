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
from collections.abc import Sequence

import numpy as np
import torch

from hipress.torch.gradient import Gradient
from hipress.torch.state.error_feedback import ErrorFeedback

FIRST, EVERY, WINDOW = 10, 100, 8
"""The first step that is looked at, steps from the begin of one window to that of the next, and
steps of a window."""
SAMPLE = 1024
"""Elements of each gradient that are added up, at most."""


class FeedbackGuard:
    """The figures of one rank, while one codec is used."""

    def __init__(self, step: int) -> None:
        """:param step: from which on the codec is used"""
        self._begin = step + FIRST
        self._own: dict[str, torch.Tensor] = {}
        self._got: dict[str, torch.Tensor] = {}
        self._square = 0.0

    def looks_at(self, step: int) -> bool:
        """Whether a step's buckets are to be given to :meth:`before` and :meth:`after`."""
        return self._begin <= step < self._begin + WINDOW

    def is_over(self, step: int) -> bool:
        """Whether the step before this one was the window's last, and :meth:`sample` and
        :meth:`error` are to be called."""
        return step >= self._begin + WINDOW

    def before(self, flat: torch.Tensor, gradients: Sequence[Gradient], step: int) -> None:
        """Adds a bucket's gradients that are about to be compressed."""
        _add(self._own, flat, gradients)
        if step == self._begin + WINDOW - 1:
            for gradient in gradients:
                part = flat[gradient.offset : gradient.offset + gradient.count]
                self._square += part.float().square().sum().item()

    def after(self, flat: torch.Tensor, gradients: Sequence[Gradient]) -> None:
        """Adds the results of a bucket's gradients, in any thread."""
        _add(self._got, flat, gradients)

    def sample(self) -> torch.Tensor:
        """The sums of this rank's sample, whose mean over the ranks :meth:`error` takes."""
        return _joined(self._own)

    def error(self, exact: torch.Tensor) -> float:
        """The error of the results' sums; 0 where there is nothing to compare.

        :param exact: the mean of all ranks' :meth:`sample`
        """
        got = _joined(self._got)
        if got.shape != exact.shape or not exact.numel():
            return 0.0
        found = ((got - exact).norm() / exact.norm()).item()
        return found if math.isfinite(found) else 0.0

    def share(self, feedback: ErrorFeedback) -> float:
        """The norm of this rank's residuals over that of its gradient in the window's last step."""
        found = residual_norm(feedback) / math.sqrt(self._square) if self._square else 0.0
        return found if math.isfinite(found) else 0.0

    def next_window(self) -> None:
        """Goes on to the next window."""
        self._begin += EVERY
        self._own, self._got, self._square = {}, {}, 0.0


def residual_norm(feedback: ErrorFeedback) -> float:
    """The norm of all residuals of a rank that tasks have."""
    total = 0.0
    for state in feedback.states.values():
        residual = state.state_dict()["states"].get("residual")
        if residual is not None:
            flat = np.asarray(residual).reshape(-1)
            total += float(np.dot(flat, flat))
    return math.sqrt(total)


def _add(sums: dict[str, torch.Tensor], flat: torch.Tensor, gradients: Sequence[Gradient]) -> None:
    for gradient in gradients:
        # An odd distance, so that not all of the sample are of one column.
        step = -(-gradient.count // SAMPLE) | 1
        part = flat[gradient.offset : gradient.offset + gradient.count : step].float()
        known = sums.get(gradient.name)
        sums[gradient.name] = part.clone() if known is None else known + part


def _joined(sums: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([sums[name] for name in sorted(sums)]) if sums else torch.zeros(0)
