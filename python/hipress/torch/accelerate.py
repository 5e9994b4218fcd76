"""Compressed gradients in Hugging Face's Accelerate: the public name of its integration.

If the environment variable HIPRESS_ACCELERATE names a compression ("auto", "maxmin:bits=8"), this
import is enough: the first DistributedDataParallel model that is trained is compressed.
"""

from hipress.torch.integrations.huggingface_accelerate import HiPressHandler

__all__ = ["HiPressHandler"]
