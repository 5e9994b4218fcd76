"""Compressed gradients in Ray Train: the public name of its integration."""

from hipress.torch.integrations.ray import HiPressConfig

__all__ = ["HiPressConfig"]
