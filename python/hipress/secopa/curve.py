"""How long an operation takes, by size; and how such a curve is fitted to measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

GOOD_SPREAD = 0.25
"""A fit whose middle measurement is off by more than this (relative) is called poor."""


@dataclass(frozen=True)
class Curve:
    """max(o, w x + b): proportional to the size from some size on, never less than ``o``.

    The published planner writes it as "o if x < max(0, (o - b) / w), else w x + b", which is the
    same function for w >= 0. Units are the owner's: the published profile has milliseconds by
    float32 elements, measured ones seconds by elements or bytes.
    """

    w: float
    b: float
    o: float

    def __call__(self, x: float) -> float:
        return max(self.o, self.w * x + self.b)


@dataclass(frozen=True)
class Fit:
    """A fitted curve and how well it fits."""

    curve: Curve
    r2: float
    """1 - residual sum of squares / total sum of squares."""
    spread: float
    """The median of |measured - fitted| / fitted."""

    @property
    def poor(self) -> bool:
        """True if predictions from this curve deserve no trust."""
        return self.spread > GOOD_SPREAD

    def to_json(self) -> dict[str, float]:
        """As the profile's file holds it."""
        return {**asdict(self.curve), "r2": self.r2, "spread": self.spread}


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Fits a curve to measurements: least squares on relative errors, outliers weighed down.

    Weights are 1 / seconds, so that small sizes count as much as large ones, times Huber's, with
    the scale taken from the median of the residuals (iteratively reweighted least squares). The
    floor is the least measurement. Neither slope nor intercept is negative.

    :raises ValueError: for fewer than two sizes
    """
    import numpy as np

    x, y = np.asarray(sizes, float), np.asarray(seconds, float)
    if len(np.unique(x)) < 2:
        raise ValueError("a curve needs measurements of at least two sizes")
    weight = 1 / y
    slope = intercept = 0.0
    for _ in range(20):
        slope, intercept = _line(x, y, weight)
        residual = np.abs(y - (slope * x + intercept)) / y
        scale = 1.4826 * np.median(residual) + 1e-12
        weight = np.sqrt(np.minimum(1, 1.345 * scale / np.maximum(residual, 1e-300))) / y
    curve = Curve(float(slope), float(intercept), float(y.min()))
    fitted = np.array([curve(v) for v in x])
    total = float(((y - y.mean()) ** 2).sum())
    r2 = 1 - float(((y - fitted) ** 2).sum()) / total if total > 0 else 1.0
    return Fit(curve, r2, float(np.median(np.abs(y - fitted) / fitted)))


def _line(x, y, weight) -> tuple[float, float]:
    """Weighted least squares y = slope x + intercept with both at least 0."""
    import numpy as np

    matrix = np.stack([x, np.ones_like(x)], 1) * weight[:, None]
    (slope, intercept), *_ = np.linalg.lstsq(matrix, y * weight, rcond=None)
    if intercept < 0:
        a = x * weight
        return float(a @ (y * weight) / (a @ a)), 0.0
    if slope < 0:
        return 0.0, float(weight @ (y * weight) / (weight @ weight))
    return float(slope), float(intercept)
