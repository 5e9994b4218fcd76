"""Names under which pickled models know their communication hook."""

from hipress.torch.integrations.ddp import Detached, hipress_hook

__all__ = ["Detached", "hipress_hook"]
