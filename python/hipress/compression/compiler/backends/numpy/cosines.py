"""The discrete cosine transform of blocks, and its inverse: the order of every operation.

The transforms are those of Plonka and Tasche, "Fast and numerically stable algorithms for discrete
cosine transforms", Linear Algebra and its Applications 394, 2005: orthogonal at each step, so
errors do not grow. In float32, without contracted multiply-adds.

With r = sqrt(1/2) a DCT-II of n = 2 h elements is one
of the sums of elements j and n - 1 - j, times r, and a DCT-IV of their differences, times r: its
even and its odd coefficients. A DCT-IV is a rotation of elements j and n - 1 - j by the angle
pi (2 j + 1) / (4 n), a DCT-II of each half, and sums and differences of those, times r. The inverse
of the DCT-II undoes these steps in reverse order; the DCT-IV is its own inverse. What is NaN in the
end is the same NaN, as the sign and the bits of one depend on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_R = np.float32(math.sqrt(0.5))


def cosines(size: int) -> np.ndarray:
    """Return float32[size]: cos(pi (2 j + 1) / (4 size)); backwards, these are the sines.

    Computed as doubles and rounded. No value is so close to the middle of two floats that libraries
    of mathematics could round it differently, so the table is the same on every machine.
    """
    angles = [math.pi * (2 * j + 1) / (4 * size) for j in range(size)]
    return np.array([math.cos(angle) for angle in angles], np.float32)


def dct(values: np.ndarray, block: int) -> np.ndarray:
    """Return float32[n]: the orthonormal DCT-II of each `block` elements, a power of two.

    The rest of the last block is unchanged.
    """
    return _blocks(values, block, _dct2)


def idct(values: np.ndarray, block: int) -> np.ndarray:
    """Return the inverse of dct()."""
    return _blocks(values, block, _dct3)


def _blocks(values: np.ndarray, block: int, transform: Callable) -> np.ndarray:
    whole = values.size // block * block
    done = transform(values[:whole].reshape(-1, block))
    done = np.concatenate([done.reshape(-1), values[whole:]])
    return np.where(np.isnan(done), np.float32(np.nan), done)


def _dct2(x: np.ndarray) -> np.ndarray:
    if x.shape[1] == 1:
        return x
    y, (a, b) = np.empty_like(x), _halves(x)
    y[:, 0::2], y[:, 1::2] = _dct2((a + b) * _R), _dct4((a - b) * _R)
    return y


def _dct3(y: np.ndarray) -> np.ndarray:
    if y.shape[1] == 1:
        return y
    a, b = _dct3(y[:, 0::2]), _dct4(y[:, 1::2])
    return np.concatenate([(a + b) * _R, ((a - b) * _R)[:, ::-1]], axis=1)


def _dct4(x: np.ndarray) -> np.ndarray:
    size = x.shape[1]
    if size == 1:
        return x
    (a, b), half, table = _halves(x), size // 2, cosines(size)
    c, s = table[:half], table[: half - 1 : -1]
    turned = b * c - a * s
    turned[:, 1::2] = -turned[:, 1::2]
    p, q = _dct2(a * c + b * s), _dct2(turned)
    y = np.empty_like(x)
    y[:, 0], y[:, -1] = p[:, 0], -q[:, 0]
    p, q = p[:, 1:], q[:, :0:-1]
    y[:, 2::2], y[:, 1:-1:2] = (p + q) * _R, (p - q) * _R
    return y


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements j and n - 1 - j of each row, for each j < n / 2."""
    half = x.shape[1] // 2
    return x[:, :half], x[:, : half - 1 : -1]
