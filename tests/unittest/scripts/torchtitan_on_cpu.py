"""torchtitan's train script on CPUs, where it supports accelerators only.

torchtitan reads its device once, so it is replaced before the other modules are imported. Its
attention is compiled for GPUs, so PyTorch's own replaces it.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import torch
import torchtitan.tools.utils as titan_utils


class CpuModule:
    """``torch.cpu`` with the functions of ``torch.cuda`` that torchtitan calls."""

    def __getattr__(self, name: str) -> object:
        return getattr(torch.cpu, name)

    def get_device_name(self, device: object = None) -> str:
        return "cpu"

    def get_device_properties(self, device: object = None) -> SimpleNamespace:
        return SimpleNamespace(total_memory=1 << 30)

    def memory_stats(self, device: object = None) -> dict[str, int]:
        return {}

    def set_device(self, device: object) -> None: ...

    def reset_peak_memory_stats(self, device: object = None) -> None: ...

    def empty_cache(self) -> None: ...

    def current_device(self) -> int:
        return 0


titan_utils.device_type, titan_utils.device_module = "cpu", CpuModule()

from torchtitan import train  # noqa: E402
from torchtitan.distributed import fsdp  # noqa: E402
from torchtitan.models import llama3  # noqa: E402
from torchtitan.models.common.attention import ScaledDotProductAttention  # noqa: E402

llama3.get_attention_config = lambda backend: ScaledDotProductAttention.Config()


def sum_gradients(model: torch.nn.Module) -> None:
    """Sum gradients by an operation that Gloo supports, which has no factor."""
    for module in model.modules():
        if isinstance(module, torch.distributed.fsdp.FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


if "llama3" in sys.argv:  # without compression
    fsdp.disable_fsdp_gradient_division = sum_gradients
train.main()
