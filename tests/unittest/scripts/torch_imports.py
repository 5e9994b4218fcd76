"""Checks that hipress.torch imports FSDP only when a script uses it."""

import sys

import torch.distributed  # noqa: F401

before = set(sys.modules)
import hipress.torch.elastic  # noqa: E402

heavy = {"torch.distributed.fsdp", "torch.distributed.tensor", "torch._dynamo", "sympy"}
assert not heavy & (set(sys.modules) - before), heavy & (set(sys.modules) - before)
from hipress.torch import compress_fsdp  # noqa: E402

assert "torch.distributed.fsdp" in sys.modules and callable(compress_fsdp)
assert not hasattr(hipress.torch, "compress_fsdq")
