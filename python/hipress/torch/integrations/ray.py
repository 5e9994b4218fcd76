"""Ray Train: a process group whose ranks trust only each other, for compressed gradients."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field

from ray.train.torch import TorchConfig

PREFIX = "HIPRESS_"


@dataclass
class HiPressConfig(TorchConfig):
    """Process group of a Ray Train job that compresses gradients.

    >>> trainer = TorchTrainer(train, torch_config=HiPressConfig(), ...)
    ...     # in train(): hipress.torch.compress(ray.train.torch.prepare_model(model))
    >>> trainer = TorchTrainer(train, torch_config=HiPressConfig("hipress"), ...)

    All workers get the variables ``HIPRESS_*`` of the process that makes this object, and a secret,
    without which other processes cannot connect to them.

    Args:
        backend: as in TorchConfig. "hipress" compresses each all-reduce of DDP, without error
            feedback, see :mod:`hipress.torch.integrations.process_group`. Default: "nccl" with
            GPUs, otherwise "gloo", for :func:`hipress.torch.compress` in the training function
        init_method: as in TorchConfig
        timeout_s: as in TorchConfig
        environment: variables that all workers get before they make the process group
    """

    environment: dict[str, str] = field(
        default_factory=lambda: {k: v for k, v in os.environ.items() if k.startswith(PREFIX)},
        repr=False,  # it has the secret
    )

    def __post_init__(self) -> None:
        self.environment.setdefault("HIPRESS_SECRET", secrets.token_hex(32))

    @property
    def backend_cls(self) -> type:
        """Class of Ray's object that makes the process group."""

        class HiPressBackend(super().backend_cls):
            """Ray's backend for PyTorch, after the workers have the variables and "hipress"."""

            def on_start(self, worker_group: object, backend_config: HiPressConfig) -> None:
                worker_group.execute(_prepare, backend_config.environment)
                super().on_start(worker_group, backend_config)

        return HiPressBackend


def _prepare(environment: dict[str, str]) -> None:
    os.environ.update(environment)
    import hipress.torch  # noqa: F401, PLC0415, makes the backend "hipress" known
