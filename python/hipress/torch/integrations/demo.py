"""Decoupled momentum: ranks send the largest cosine coefficients of their momenta.

Peng, Quesnelle and Kingma, "DeMo: Decoupled momentum optimization", 2024 (arXiv:2411.19870). Each
rank keeps a momentum m of its gradients: m = decay * m + g. The method assumes that few cosine
coefficients of blocks of m contain what is common to all ranks. In each step a rank sends the
largest of them and subtracts them from m. All ranks step by the sign of the mean of what was sent.

The transform is linear and keeps lengths, so m may be kept as coefficients. It then is the residual
of a codec that sends the largest elements and multiplies the rest by ``decay``. That codec is
``sparseloco``: values of 2 bits, and positions in fewer bits than an index has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import torch
import torch.distributed as dist

from hipress.base.checked import is_count
from hipress.torch.dtypes import local_of
from hipress.torch.integrations.checks import pairs
from hipress.torch.integrations.optimizer import DistributedOptimizer, PackedGradients
from hipress.torch.optim import ByParameter

_MIN_SIZE = 4096
"""Minimum elements of a compressed gradient: one block of the usual size."""


class DeMo(DistributedOptimizer):
    """SGD by signs, with a momentum of which ranks exchange the largest cosine coefficients.

    >>> optimizer = hipress.torch.DeMo(model.named_parameters(), lr=1e-3)
    >>> hipress.torch.broadcast_parameters(model.state_dict(), root_rank=0)
    >>> for inputs, targets in batches:
    ...     loss_of(model, inputs, targets).backward()
    ...     optimizer.step()
    ...     optimizer.zero_grad()

    Do not wrap the model in DistributedDataParallel. A step sends compression_topk values for every
    compression_chunk ** 2 elements, some 350 times fewer bytes than float32 gradients at the
    defaults. A parameter's gradient of fewer than ``min_size`` elements is averaged uncompressed,
    and its step has no momentum. Momenta are in ``.compression.state_dict()``.

    A model may be sharded inside each site, as for :class:`DiLoCo`. FSDP2 averages gradients inside
    the site, and ``group`` has the ranks with the same shard, one of each site. Momenta, blocks and
    the largest coefficients are those of a rank's shard, and ``min_size`` counts its elements.

    Each rank computes the step from the same bits. Where processors differ, the sign of a sum close
    to 0 may also differ. Therefore broadcast the first rank's weights at intervals.

    Args:
        named_parameters: as from ``model.named_parameters()``
        lr: amount by which every weight moves in a step
        compression_decay: factor of the momentum from one step to the next, in [0, 1]
        compression_topk: mean number of coefficients of a block that are sent
        compression_chunk: maximum rows and columns of a block: in each dimension the largest number
            that divides it. Dimensions from the second on count as one
        weight_decay: share of its weights that a step of length 1 subtracts
        group, topology, min_size, timeout: see :class:`DistributedOptimizer`

    Raises:
        ValueError: on every rank, if any rank's setting is wrong or they differ
    """

    _takes_shards = True

    def __init__(
        self,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        lr: float = 1e-3,
        compression_decay: float = 0.999,
        compression_topk: int = 32,
        compression_chunk: int = 64,
        weight_decay: float = 0.0,
        *,
        group: dist.ProcessGroup | None = None,
        topology: str | None = None,
        min_size: int = _MIN_SIZE,
        timeout: float | None = None,
    ) -> None:
        named = [(name, p) for name, p in pairs(named_parameters, "DeMo") if p.requires_grad]
        self._counts = {
            "compression_topk": compression_topk,
            "compression_chunk": compression_chunk,
        }
        self._rates = {"lr": lr, "weight_decay": weight_decay}
        try:
            ratio = min(compression_topk / compression_chunk**2, 1.0)
        except (TypeError, ArithmeticError):  # all ranks receive the error
            ratio = 1.0
        codec = {"type": "sparseloco", "ratio": ratio, "decay": compression_decay}
        signs = _SignDescent([p for _, p in named], lr, weight_decay)
        super().__init__(
            signs, named, codec, group=group, topology=topology, min_size=min_size, timeout=timeout
        )

    def _check_options(self) -> None:
        for name, value in self._counts.items():
            if not is_count(value):
                raise ValueError(f"{name} must be 1 or more, not {value!r}")
        for name, value in self._rates.items():
            if not value >= 0:
                raise ValueError(f"{name} must be 0 or more, not {value!r}")

    def _new_bucket(self, named: list[tuple[str, torch.nn.Parameter]]) -> PackedGradients:
        settings = self.compression.settings
        shards = {name: local_of(p) for name, p in named}
        blocks = {
            name: Blocks(shard.shape, self._counts["compression_chunk"])
            for name, shard in shards.items()
            if settings.compresses(name, shard.numel(), shard.shape)
        }
        return _CosineBucket(named, blocks)


class _SignDescent(ByParameter):
    """signSGD (Bernstein et al., ICML 2018, arXiv:1802.04434): steps against gradients' signs."""

    def __init__(self, parameters: list[torch.nn.Parameter], lr: float, weight_decay: float):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(parameter.grad.sign(), alpha=group["lr"])


class _CosineBucket(PackedGradients):
    """Bucket whose large gradients, those that have blocks, travel as cosine coefficients."""

    def __init__(
        self, named: list[tuple[str, torch.nn.Parameter]], blocks: dict[str, Blocks]
    ) -> None:
        super().__init__(named)
        self._blocks = blocks
        self.dtype = torch.float32

    def _flattened(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        blocks = self._blocks.get(name)
        gradient = gradient.float()
        return (gradient if blocks is None else blocks.coefficients(gradient)).reshape(-1)

    def _restored(self, name: str, values: torch.Tensor) -> torch.Tensor:
        blocks = self._blocks.get(name)
        return values if blocks is None else blocks.values(values)


class Blocks:
    """Cosine transform (DCT-II, orthonormal) of a tensor's blocks.

    A block has at most ``chunk`` rows and columns. The tensor's dimensions from the second on count
    as one, and a vector is a row.
    """

    def __init__(self, shape: Iterable[int], chunk: int) -> None:
        shape = tuple(shape)
        rows = shape[0] if len(shape) > 1 else 1
        self._columns = math.prod(shape) // rows
        self.rows, self.columns = _divisor(rows, chunk), _divisor(self._columns, chunk)
        """Rows and columns of a block."""

    def coefficients(self, values: torch.Tensor) -> torch.Tensor:
        """Return the coefficients of ``values``, float32, in the same shape and block by block."""
        down, across = self._bases(values.device)
        return self._transform(values, down, across.T)

    def values(self, coefficients: torch.Tensor) -> torch.Tensor:
        """Return the inverse of :meth:`coefficients`."""
        down, across = self._bases(coefficients.device)
        return self._transform(coefficients, down.T, across)

    def _bases(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        return _basis(self.rows, device), _basis(self.columns, device)

    def _transform(self, x: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, enabled=False):  # small values would become 0
            y = x.reshape(-1, self.columns) @ right
            return (left @ y.view(-1, self.rows, self._columns)).view(x.shape)


@functools.cache
def _basis(size: int, device: torch.device) -> torch.Tensor:
    """Return float32[size, size] whose row k is the cosine of frequency k, of length 1."""
    k = i = torch.arange(size, dtype=torch.float64, device="cpu")
    rows = torch.cos(math.pi * torch.outer(k, 2 * i + 1) / (2 * size)) * math.sqrt(2 / size)
    rows[0] *= math.sqrt(0.5)
    return rows.float().to(device)


def _divisor(count: int, limit: int) -> int:
    """Return the largest number up to ``limit`` that divides ``count``."""
    return next(n for n in range(min(limit, count), 0, -1) if count % n == 0)
