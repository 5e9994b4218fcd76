"""What a script may change of its optimizer in mid-training, as a step's sum brings it to all.

In an elastic job one worker's settings have to count: a worker that was started again is at another
place of its schedule than the others, and with rates of their own weights would not stay equal.
"""

from __future__ import annotations

import numpy as np
from mxnet import optimizer as opt

NAME = "learning rate"
"""Of what is summed; names of gradients are Python's of a number or text, so none is this."""
_ATTRIBUTES = ("lr", "wd", "rescale_grad")
_NONE = b"\xff" * 8  # a NaN that no arithmetic makes
SIZE = 8 * len(_ATTRIBUTES)
"""Elements of the sum."""


def pack(optimizer: opt.Optimizer) -> np.ndarray:
    """Return the settings as float32[SIZE], the bytes of a float64 each: float16, too, holds 0 to
    255 exactly, so that a sum with zeros brings all bits."""
    data = b""
    for name in _ATTRIBUTES:
        value = getattr(optimizer, name, None)  # with a schedule, the rate may be None
        data += _NONE if value is None else np.float64(value).tobytes()
    return np.frombuffer(data, np.uint8).astype(np.float32)


def unpack(total: np.ndarray, optimizer: opt.Optimizer) -> None:
    """Give an optimizer the settings that :func:`pack` made. The worker whose they are does so,
    too: a NumPy number can count otherwise than a Python one."""
    data = total.astype(np.uint8).tobytes()
    for at, name in enumerate(_ATTRIBUTES):
        own = data[8 * at : 8 * at + 8]
        if own != _NONE:
            setattr(optimizer, name, float(np.frombuffer(own, np.float64)[0]))
