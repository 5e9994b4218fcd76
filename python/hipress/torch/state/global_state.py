"""What all ranks remember of a gradient, on its way to another number of ranks or topology."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hipress.compression.compressor import Compressor
from hipress.topology.graph import Partition
from hipress.torch.dtypes import floats


class GlobalState:
    """The sum of all ranks' residuals of one gradient, and its momentum, to be resharded.

    ``states["residual"]`` is in units of the result, other states are means over the ranks.
    """

    def __init__(self, size: int) -> None:
        self.size, self.states, self.step = size, {}, 0

    def add(self, name: str, span: slice, values: torch.Tensor, scale: float) -> None:
        """Adds ``scale`` times one task's values, of these elements of the parameter."""
        if span.stop > self.size:
            raise ValueError(
                f"the state has elements up to {span.stop} of a gradient that has {self.size} here"
            )
        whole = self.states.setdefault(name, floats(self.size))
        whole[span].add_(values.reshape(-1), alpha=scale)

    def shard_to(self, compressor: Compressor, partition: Partition, scale: float) -> None:
        """Sets a fresh compressor's states to its part of these, the residual times ``scale``."""
        span = slice(partition.offset, partition.offset + partition.count)
        state = compressor.state_dict()
        state["states"] = {name: floats(partition.count) for name in compressor.state_names}
        for name, whole in self.states.items():
            if name == "residual" or name in state["states"]:
                state["states"][name] = whole[span] * (scale if name == "residual" else 1.0)
        compressor.load_state_dict({**state, "step": self.step})

    def save(self, name: str, put: Callable[..., None]) -> None:
        """Saves it in a checkpoint: ``put`` takes a path, fields and states."""
        states = {key: values.clone() for key, values in self.states.items()}
        put(f"total/{name}", {"step": self.step}, states)

    def copy_step_to(self, compressor: Compressor) -> None:
        """Sets only a fresh compressor's step, so that its warm-up is as far as the others'."""
        compressor.load_state_dict({**compressor.state_dict(), "step": self.step})
