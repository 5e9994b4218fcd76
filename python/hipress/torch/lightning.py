"""Compressed gradients in Lightning: the public names of its integration.

This import also registers the strategies "hipress" and "hipress_fsdp" for ``Trainer(strategy=)``.
"""

from hipress.torch.integrations.lightning import HiPressDDPStrategy, HiPressModelParallelStrategy

__all__ = ["HiPressDDPStrategy", "HiPressModelParallelStrategy"]
