"""State of a gradient on all ranks, on its way to another number of ranks or topology.

For means, N ranks save their residuals, and M ranks load them. T of the new tasks encode the same
part of the gradient, and share the residual equally::

    r(0) ... r(N-1) ──► R = (r(0) + ... + r(N-1)) / N ──► each of the T tasks gets R * M / T

The mean of the new results over M ranks then contains T * (R * M / T) / M = R once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from hipress.compression.compressor import Compressor
from hipress.topology.graph import Partition
from hipress.torch.dtypes import floats


class GlobalState:
    """Sum of all ranks' residuals of one gradient, and its momentum, to be resharded.

    ``states["residual"]`` is in units of the result. Other states are means over the ranks.
    """

    def __init__(self, size: int) -> None:
        self.size, self.states, self.step = size, {}, 0

    def add(self, name: str, span: slice, values: torch.Tensor, scale: float) -> None:
        """Add ``scale`` times one task's values for these elements of the parameter."""
        if span.stop > self.size:
            raise ValueError(
                f"the state has elements up to {span.stop} of a gradient that has {self.size} here"
            )
        whole = self.states.setdefault(name, floats(self.size))
        whole[span].add_(values.reshape(-1), alpha=scale)

    def shard_to(self, compressor: Compressor, partition: Partition, scale: float) -> None:
        """Set a new compressor's states to its part of these, with the residual times ``scale``."""
        span = slice(partition.offset, partition.offset + partition.count)
        state = compressor.state_dict()
        state["states"] = {name: floats(partition.count) for name in compressor.state_names}
        for name, whole in self.states.items():
            if name == "residual" or name in state["states"]:
                state["states"][name] = whole[span] * (scale if name == "residual" else 1.0)
        compressor.load_state_dict({**state, "step": self.step})

    def save(self, name: str, put: Callable[..., None]) -> None:
        """Save this state in a checkpoint. ``put`` takes a path, fields and states."""
        states = {key: values.clone() for key, values in self.states.items()}
        put(f"total/{name}", {"step": self.step}, states)

    def copy_step_to(self, compressor: Compressor) -> None:
        """Set only a new compressor's step, so that its warm-up continues as in other tasks."""
        compressor.load_state_dict({**compressor.state_dict(), "step": self.step})
