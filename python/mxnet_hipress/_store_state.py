"""Training state that the workers of an elastic job share through a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import optimizer as opt

from hipress.config import CompressionConfig
from hipress.elastic.membership.settings import timeout
from hipress.elastic.training.arrays import ArrayState
from hipress.planning.plan import Decision
from mxnet_hipress._states import allows_feedback, load_optimizer
from mxnet_hipress._sums import SumArrays

_TIMEOUT_SECONDS = 300
"""Seconds to wait for enough workers, and for a slow one. HIPRESS_TIMEOUT overrides it."""

# Optimizer settings that a script may change during training are sent to all workers in a step's
# sum. A restarted worker may be at another place of its schedule, and weights would differ if each
# worker used its own rates.
_SETTINGS = "learning rate"
"""Name of the settings in the sum. Gradients' names are reprs of keys, so none equals it."""
_ATTRIBUTES = ("lr", "wd", "rescale_grad")
_NONE = b"\xff" * 8  # a NaN that arithmetic does not produce
_SIZE = 8 * len(_ATTRIBUTES)
"""Number of elements of the settings in the sum."""


class StoreState(ArrayState):
    """Weights, their optimizer and the gradients of a step, by key number."""

    module = "mxnet_hipress.elastic_store"

    def __init__(self, slots: int) -> None:
        super().__init__(check_every=100, timeout=timeout(_TIMEOUT_SECONDS))
        self.config = CompressionConfig.of("none")
        self.weights_of: dict[int, mx.nd.NDArray] = {}
        self.gradients: dict[int, mx.nd.NDArray] = {}
        """Gradients of the keys that every step pushes."""
        self.names: dict[int, str] = {}
        """Names of these keys, in the same order."""
        self.updater: opt.Updater | None = None
        self._slots, self._sums = slots, SumArrays()

    def make_step(self) -> None:
        """Sum the gradients and make the optimizer's step, with rank 0's learning rate."""
        gradients = {self.names[index]: gradient for index, gradient in self.gradients.items()}
        own = np.zeros(_SIZE)
        if self.rank == 0:  # rank 0 is the oldest worker: joining workers get higher ranks
            own = _pack_settings(self.updater.optimizer)
        gradients[_SETTINGS] = mx.nd.array(own, dtype=self._last_type())
        totals = dict(self._sums.reduce(self.session.compression, gradients))
        _unpack_settings(totals[_SETTINGS].asnumpy(), self.updater.optimizer)
        for index, name in self.names.items():
            total = totals[name]
            if self.size < self._slots:
                total *= self._slots / self.size
            self.updater(index, total, self.weights_of[index])
        self.applied = True
        self.session.applied()
        self.commit()

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Return elements and type of each gradient and of the optimizer's settings, by name."""
        found = {
            self.names[index]: (gradient.size, np.dtype(gradient.dtype).name)
            for index, gradient in self.gradients.items()
        }
        return {**found, _SETTINGS: (_SIZE, self._last_type())}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each gradient and of the optimizer's settings, by name."""
        found = {self.names[index]: gradient.shape for index, gradient in self.gradients.items()}
        return {**found, _SETTINGS: (_SIZE,)}

    def _last_type(self) -> str:
        """Return the type of the last gradient, which the settings also have."""
        return np.dtype(list(self.gradients.values())[-1].dtype).name

    def summed_config(self) -> CompressionConfig:
        """Return the compression, which leaves out the optimizer's settings."""
        as_it_is = {_SETTINGS: Decision(False, 1)}
        return replace(self.config, plan={**self.config.decisions, **as_it_is})

    def allows_feedback(self) -> bool:
        """Return whether the optimizer supports error feedback."""
        return allows_feedback(self.updater.optimizer)

    def settings(self) -> dict[str, str]:
        """Return texts that must be equal on all workers, by name."""
        keys = [f"{self.names[i]} {g.shape} {g.dtype.__name__}" for i, g in self.gradients.items()]
        optimizer = type(self.updater.optimizer).__name__
        return {**super().settings(), "optimizer": optimizer, "keys": "; ".join(keys)}

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a joining worker copies."""
        weights = {index: self.weights_of[index].asnumpy() for index in self.gradients}
        states = self.updater.get_states(dump_optimizer=True)
        return {**super().state_dict(), "weights": weights, "optimizer": states}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state that another worker's :meth:`state_dict` returned."""
        for index, value in saved["weights"].items():
            self.weights_of[index][:] = mx.nd.array(value, dtype=value.dtype)
        load_optimizer(self.updater.optimizer, [self.updater], saved["optimizer"])
        super().load_state_dict(saved)

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Yield names and bytes of the weights."""
        for index, name in self.names.items():
            yield name, memoryview(self.weights_of[index].asnumpy()).cast("B")

    def drop_gradients(self) -> None:
        """Keep the gradients, which are summed again."""


def _pack_settings(optimizer: opt.Optimizer) -> np.ndarray:
    """Return the settings as float32[_SIZE], one element per byte of each float64.

    float16 also represents 0 to 255 exactly, so that a sum with zeros preserves all bits.
    """
    data = b""
    for name in _ATTRIBUTES:
        value = getattr(optimizer, name, None)  # None is possible with a schedule
        data += _NONE if value is None else np.float64(value).tobytes()
    return np.frombuffer(data, np.uint8).astype(np.float32)


def _unpack_settings(total: np.ndarray, optimizer: opt.Optimizer) -> None:
    """Set an optimizer's settings from an array that :func:`_pack_settings` made.

    The worker that sent them also does so, because Python and NumPy numbers may compute
    differently.
    """
    data = total.astype(np.uint8).tobytes()
    for index, name in enumerate(_ATTRIBUTES):
        own = data[8 * index : 8 * index + 8]
        if own != _NONE:
            setattr(optimizer, name, float(np.frombuffer(own, np.float64)[0]))
