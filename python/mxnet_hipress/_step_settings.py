"""Optimizer settings that a script may change during training, sent to all workers in a step's sum.

In an elastic job all workers use one worker's settings. A restarted worker may be at another place
of its schedule, and weights would differ if each worker used its own rates.
"""

from __future__ import annotations

import numpy as np
from mxnet import optimizer as opt

NAME = "learning rate"
"""Name of the settings in the sum. Gradients' names are reprs of keys, so none equals it."""
_ATTRIBUTES = ("lr", "wd", "rescale_grad")
_NONE = b"\xff" * 8  # a NaN that arithmetic does not produce
SIZE = 8 * len(_ATTRIBUTES)
"""Number of elements of the settings in the sum."""


def pack(optimizer: opt.Optimizer) -> np.ndarray:
    """Return the settings as float32[SIZE], one element per byte of each float64.

    float16 also represents 0 to 255 exactly, so that a sum with zeros preserves all bits.
    """
    data = b""
    for name in _ATTRIBUTES:
        value = getattr(optimizer, name, None)  # None is possible with a schedule
        data += _NONE if value is None else np.float64(value).tobytes()
    return np.frombuffer(data, np.uint8).astype(np.float32)


def unpack(total: np.ndarray, optimizer: opt.Optimizer) -> None:
    """Set an optimizer's settings from an array that :func:`pack` made.

    The worker that sent them also does so, because Python and NumPy numbers may compute
    differently.
    """
    data = total.astype(np.uint8).tobytes()
    for at, name in enumerate(_ATTRIBUTES):
        own = data[8 * at : 8 * at + 8]
        if own != _NONE:
            setattr(optimizer, name, float(np.frombuffer(own, np.float64)[0]))
