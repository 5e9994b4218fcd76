"""The buckets of a DistributedOptimizer: gradients that travel together in one flat tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hipress.torch.gradient import packed


class Bucket:
    """Gradients of one dtype that travel together."""

    def __init__(self, named: list[tuple[str, torch.nn.Parameter]]) -> None:
        self.named = named
        self.gradients = packed((name, parameter.numel()) for name, parameter in named)
        self.dtype = named[0][1].dtype
        """Of the flat tensor."""
        self._flat: torch.Tensor | None = None
        self._packed: list[tuple[torch.Tensor | None, int]] = []
        """The gradients, and their versions, when they were packed."""

    def like(self) -> torch.Tensor:
        """An empty tensor of the flat one's dtype, on its device."""
        return torch.empty(0, dtype=self.dtype, device=self.named[0][1].device)

    def pack(self) -> torch.Tensor:
        """Packs the gradients into one flat tensor; a contiguous one alone stays as it is."""
        for _, parameter in self.named:
            # Unused in this rank's forward pass; others may have used it.
            if parameter.grad is None and parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        self._packed = [(p.grad, 0 if p.grad is None else p.grad._version) for _, p in self.named]
        # What is written to .data does not count as a new version.
        gradients = [
            self._flattened(name, torch.zeros_like(p) if p.grad is None else p.grad.data)
            for name, p in self.named
        ]
        if len(gradients) == 1:
            self._flat = gradients[0]
        elif self._flat is None:
            self._flat = torch.cat(gradients)
        else:
            torch.cat(gradients, out=self._flat)
        return self._flat

    def unpack(self) -> None:
        """Copies the flat tensor's values to the gradients, but for parameters that were frozen.

        :raises RuntimeError: if a gradient was changed since :meth:`pack`
        """
        for (name, parameter), (packed_one, version) in zip(self.named, self._packed):
            now = parameter.grad
            if now is not packed_one or (now is not None and now._version != version):
                raise RuntimeError(
                    f"the gradient of {name!r} was changed between backward() and step(), when its "
                    "average was on its way: call synchronize() before you clip or unscale "
                    "gradients, and before GradScaler.step()"
                )
        self._packed = []
        sizes = [gradient.count for gradient in self.gradients]
        for values, (name, parameter) in zip(self._flat.split(sizes), self.named):
            gradient = parameter.grad
            if gradient is not None and values.data_ptr() != gradient.data_ptr():
                gradient.copy_(self._restored(name, values.view_as(gradient)))

    def _flattened(self, name: str, gradient: torch.Tensor) -> torch.Tensor:
        """What travels of a gradient."""
        return gradient.reshape(-1)

    def _restored(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """The gradient of what has come back, in its shape."""
        return values


def buckets_of(
    named: list[tuple[str, torch.nn.Parameter]],
    new: Callable[[list[tuple[str, torch.nn.Parameter]]], Bucket],
    most: int,
) -> list[Bucket]:
    """Groups gradients of one dtype, in this order, into buckets of at most ``most`` bytes, unless
    one gradient alone has more."""
    found, bucket, size = [], [], 0
    for name, parameter in named:
        more = parameter.numel() * parameter.element_size()
        if bucket and (size + more > most or parameter.dtype != bucket[0][1].dtype):
            found.append(new(bucket))
            bucket, size = [], 0
        bucket.append((name, parameter))
        size += more
    return found + ([new(bucket)] if bucket else [])
