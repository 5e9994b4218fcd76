"""Element types of gradients."""

from __future__ import annotations

import torch

from hipress._lib import BFLOAT16, FLOAT16, FLOAT32

FLAGS = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
"""Types of gradients that can be compressed, as c_api.h numbers them."""

NAMES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}


def floats(*size: int) -> torch.Tensor:
    """Zeros for the library, whatever the user has made PyTorch's default dtype and device."""
    return torch.zeros(size, dtype=torch.float32, device="cpu")
