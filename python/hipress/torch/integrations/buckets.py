"""Buckets of a DistributedOptimizer: gradients that travel together in one flat tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hipress.torch.dtypes import of_gradient
from hipress.torch.executors.engine import HipressError
from hipress.torch.gradient import packed


class Bucket:
    """Gradients of one dtype that travel together."""

    def __init__(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        self.named = named
        self.gradients = packed((name, parameter.numel()) for name, parameter in named)
        self.dtype = of_gradient(named[0][1])
        """Type of the flat tensor."""
        self._flat: torch.Tensor | None = None
        self._packed: list[tuple[torch.Tensor, int] | None] = []
        """Gradients with their versions when they were packed; None for frozen parameters."""

    def like(self) -> torch.Tensor:
        """Return an empty tensor of the flat one's dtype, on its device."""
        return torch.empty(0, dtype=self.dtype, device=self.named[0][1].device)

    def pack(self) -> torch.Tensor:
        """Pack the gradients into one flat tensor. A single contiguous gradient is used unchanged.

        Frozen parameters get zeros.
        """
        self._packed, flat = [], []
        for name, parameter in self.named:
            if parameter.requires_grad:
                if parameter.grad is None:  # unused on this rank; other ranks may have used it
                    parameter.grad = _zeros(parameter)
                gradient = parameter.grad
                if gradient.layout != torch.strided:
                    raise HipressError(f"{name!r} has a sparse gradient: use sparse=False")
                self._packed.append((gradient, gradient._version))
            else:
                gradient = _zeros(parameter)
                self._packed.append(None)
            # What is written to .data does not count as a new version.
            flat.append(self._flattened(name, gradient.data))
            if flat[-1].dtype != self.dtype:
                raise HipressError(
                    f"the gradient of {name!r} is {gradient.dtype}, and not {self.dtype} as when "
                    "the DistributedOptimizer was made"
                )
        if len(flat) == 1:
            self._flat = flat[0]
        elif self._flat is None:
            self._flat = torch.cat(flat)
        else:
            torch.cat(flat, out=self._flat)
        return self._flat

    def check_unchanged(self) -> None:
        """Check that gradients have not changed since they were packed."""
        for (name, parameter), was in zip(self.named, self._packed):
            now = parameter.grad
            if was is not None and (now is not was[0] or now._version != was[1]):
                raise RuntimeError(
                    f"the gradient of {name!r} was changed between backward() and step(), when its "
                    "average was on its way: call synchronize() before you clip or unscale "
                    "gradients, and before GradScaler.step()"
                )

    def unpack(self) -> None:
        """Copy the flat tensor's values to the gradients, except those of frozen parameters.

        An optimizer would move frozen parameters if they had gradients.
        """
        packed, self._packed = list(zip(self.named, self._packed)), []
        sizes = [gradient.count for gradient in self.gradients]
        for values, ((name, parameter), was) in zip(self._flat.split(sizes), packed):
            gradient = parameter.grad
            if was is not None and values.data_ptr() != gradient.data_ptr():
                gradient.copy_(self._restored(name, values.view_as(gradient)))

    def _flattened(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        """Return the part of a gradient that travels, as a flat tensor."""
        return gradient.reshape(-1)

    def _restored(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Return a gradient in its shape from its received values."""
        return values


def buckets_of(
    named: list[tuple[str, torch.nn.Parameter]],
    new: Callable[[list[tuple[str, torch.nn.Parameter]]], Bucket],
    most: int,
) -> list[Bucket]:
    """Group gradients of one dtype, in this order, into buckets of at most ``most`` bytes.

    A gradient with more bytes has a separate bucket.
    """
    found, bucket, size = [], [], 0
    for name, parameter in named:
        dtype = of_gradient(parameter)
        more = parameter.numel() * dtype.itemsize
        if bucket and (size + more > most or dtype != of_gradient(bucket[0][1])):
            found.append(new(bucket))
            bucket, size = [], 0
        bucket.append((name, parameter))
        size += more
    return found + ([new(bucket)] if bucket else [])


def _zeros(parameter: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(parameter, dtype=of_gradient(parameter))
