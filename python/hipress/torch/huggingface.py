"""Compressed gradients in a Hugging Face Trainer: the public names of its integration."""

from hipress.torch.integrations.huggingface import HiPressCallback, compress_trainer

__all__ = ["HiPressCallback", "compress_trainer"]
