"""Compressed gradients in a Hugging Face Trainer: the public name of its integration."""

from hipress.torch.integrations.huggingface import compress_trainer

__all__ = ["compress_trainer"]
