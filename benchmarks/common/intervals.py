"""Confidence intervals of medians."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

RESAMPLES = 2000


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and the ends of its 95% confidence interval (Efron's bootstrap, 1979)."""
    generator = np.random.default_rng(0)
    drawn = generator.choice(values, (RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return float(low), statistics.median(values), float(high)
