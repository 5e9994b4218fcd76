"""torchtitan's trainer with a section for the compression."""

import dataclasses
import functools
from dataclasses import dataclass, field

from torchtitan.trainer import Trainer

from .compress import CompressionConfig


class HiPressTrainer(Trainer):
    """Trainer that compresses gradients by its configuration's section ``compression``."""

    @dataclass(kw_only=True, slots=True)  # novm: torchtitan requires it, with Python 3.11
    class Config(Trainer.Config):
        """torchtitan's configuration, with ``--compression.type`` and more."""

        compression: CompressionConfig = field(default_factory=CompressionConfig)

    def __init__(self, config: Config) -> None:
        if not config.training.disable_cuda_graphs:
            raise ValueError(
                "CUDA graphs cannot capture gradients that are compressed on the host: pass "
                "--training.disable_cuda_graphs"
            )
        spec = config.model_spec
        compress = functools.partial(spec.post_optimizer_build_fn, compression=config.compression)
        config.model_spec = dataclasses.replace(spec, post_optimizer_build_fn=compress)
        super().__init__(config)
