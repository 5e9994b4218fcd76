"""Curves of seconds by size, and their fits to measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

GOOD_SPREAD = 0.25
"""Relative error of the median measurement above which a fit is poor."""


@dataclass(frozen=True)
class Curve:
    """max(o, w x + b): proportional to the size from some size on, but at least ``o``.

    The published planner writes it as "o if x < max(0, (o - b) / w), else w x + b", which is the
    same function for w >= 0. The owner defines the units: the published profile has milliseconds by
    float32 elements, measured ones have seconds by elements or bytes.
    """

    w: float
    b: float
    o: float

    def __post_init__(self) -> None:
        """Check the values, which may come from a user's profile."""
        for value in (self.w, self.b, self.o):
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                raise TypeError(f"a curve is made of finite numbers, not {value!r}")

    def __call__(self, x: float) -> float:
        """Return the value at x."""
        return max(self.o, self.w * x + self.b)


@dataclass(frozen=True)
class Fit:
    """A fitted curve and how well it fits."""

    curve: Curve
    r2: float
    """1 - residual sum of squares / total sum of squares."""
    spread: float
    """Median of |measured - fitted| / fitted."""

    @property
    def poor(self) -> bool:
        """Whether predictions from this curve are unreliable."""
        return self.spread > GOOD_SPREAD

    def to_json(self) -> dict[str, float]:
        """Return the fit as a profile's file holds it."""
        return {**asdict(self.curve), "r2": self.r2, "spread": self.spread}


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Fit a curve to measurements: a constant for small sizes, a line for larger ones.

    The sizes are split where the sum of relative errors is smallest. The constant is the median of
    the sizes below. The line is a least squares fit of relative errors, so that small and large
    sizes count equally, with less weight for outliers (Huber's weights, with the scale from the
    median of the residuals). Its intercept may be negative: a small task may hit a cache that a
    large one does not.
    """
    import numpy as np

    x, y = _in_order(sizes, seconds)
    best: tuple[float, Curve] | None = None
    for split in np.unique(x)[:-1]:
        below = y[x < split]
        slope, intercept = _line(x[x >= split], y[x >= split])
        floor = float(np.median(below)) if len(below) else float(y.min())
        curve = Curve(slope, intercept, floor)
        fitted = np.array([curve(v) for v in x])
        error = float(np.abs(np.log(y / fitted)).sum())
        # A split at a larger size must pay: each size costs as much as one measurement with 10%
        # error.
        error += 0.1 * len(below) / len(x)
        if best is None or error < best[0]:
            best = error, curve
    return _judge(best[1], x, y)


def fit_link(sizes: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Fit a curve to times of messages: the long-term rate, and a latency.

    The constant is the median of messages of at most 4 KiB. The slope is the median of the slopes
    between pairs of messages (Theil and Sen's estimator) that take at least ten times as long and
    have at least a sixteenth of the largest size. An outlier, or a burst that a shaped link lets
    pass at once, therefore does not decide it. If fewer than three messages take so long, the
    larger half is used.
    """
    import numpy as np

    x, y = _in_order(sizes, seconds)
    small = y[x <= 4096 + 64]
    floor = float(np.median(small)) if len(small) else float(y.min())
    long = (y >= 10 * floor) & (x >= x.max() / 16)
    if len(np.unique(x[long])) < 3:
        long = x >= np.median(x)
    px, py = x[long], y[long]
    i, j = np.triu_indices(len(px), 1)
    differ = px[j] > px[i]
    slope = max(0.0, float(np.median((py[j] - py[i])[differ] / (px[j] - px[i])[differ])))
    curve = Curve(slope, float(np.median(py - slope * px)), floor)
    return _judge(curve, x, y)


def _in_order(sizes: Sequence[float], seconds: Sequence[float]):
    """Return measurements ordered by size, as arrays."""
    import numpy as np

    order = np.argsort(sizes, kind="stable")
    x, y = np.asarray(sizes, float)[order], np.asarray(seconds, float)[order]
    if len(np.unique(x)) < 2:
        raise ValueError("a curve needs measurements of at least two sizes")
    return x, y


def _judge(curve: Curve, x, y) -> Fit:
    import numpy as np

    fitted = np.array([curve(v) for v in x])
    total = float(((y - y.mean()) ** 2).sum())
    r2 = 1 - float(((y - fitted) ** 2).sum()) / total if total > 0 else 1.0
    return Fit(curve, r2, float(np.median(np.abs(y - fitted) / fitted)))


def _line(x, y) -> tuple[float, float]:
    """Return slope (at least 0) and intercept, by iteratively reweighted least squares."""
    import numpy as np

    weight = 1 / y
    for _ in range(20):
        matrix = np.stack([x, np.ones_like(x)], 1) * weight[:, None]
        (slope, intercept), *_ = np.linalg.lstsq(matrix, y * weight, rcond=None)
        if slope < 0:
            slope, intercept = 0.0, float(weight @ (y * weight) / (weight @ weight))
        residual = np.abs(y - (slope * x + intercept)) / y
        scale = 1.4826 * np.median(residual) + 1e-12
        weight = np.sqrt(np.minimum(1, 1.345 * scale / np.maximum(residual, 1e-300))) / y
    return float(slope), float(intercept)
