"""States of encode tasks on a GPU, for :class:`hipress.runtime.error_feedback.ErrorFeedback`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hipress.runtime.error_feedback import OWN, Codecs, ErrorFeedback, random_stream

__all__ = ["OWN", "Codecs", "DeviceState", "ErrorFeedback", "keep_on", "random_stream"]


def keep_on(device: torch.device, error_feedback: ErrorFeedback) -> None:
    """Make later states of encode tasks on this device."""
    codecs = error_feedback.codecs
    error_feedback.make_state = lambda kind, count: DeviceState(codecs, kind, count, device)


class DeviceState:
    """State of one task on a GPU, with the state_dict() of a Compressor.

    Args:
        codecs: codecs of the job
        kind: the task's kind of codec
        count: elements that it encodes
    """

    def __init__(self, codecs: Codecs, kind: object, count: int, device: torch.device) -> None:
        self._make = lambda: codecs.make(kind)
        self.codec = self._make()
        self.state_names = self.codec.state_names
        self.states = {
            name: torch.zeros(count, dtype=torch.float32, device=device)
            for name in self.state_names
        }
        self.step = self.stream = 0
        self.carried: torch.Tensor | None = None
        """Residual from another codec, if this one keeps none, until it is encoded."""
        self._device = device

    def state_dict(self) -> dict[str, Any]:
        """Return the state in host memory, after waiting for the device."""
        states = {name: values.cpu().numpy() for name, values in self.states.items()}
        if self.carried is not None and bool(self.carried.any()):
            states["residual"] = self.carried.cpu().numpy()
        about = {"type": self.codec.type, "config": self.codec.config}
        return {**about, "step": self.step, "stream": self.stream, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the result of :meth:`state_dict`, of this class or of a Compressor.

        Raises:
            ValueError: if it is not such a state
        """
        host = self._make()
        host.load_state_dict(dict(state))
        found = host.state_dict()
        for name, values in self.states.items():
            if name in found["states"]:
                values.copy_(torch.from_numpy(found["states"][name]))
            else:
                values.zero_()
        carried = None if "residual" in self.states else found["states"].get("residual")
        self.carried = None if carried is None else torch.from_numpy(carried).to(self._device)
        self.step, self.stream = found["step"], found["stream"]
