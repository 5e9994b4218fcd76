"""What the workers of an elastic job train together through a store."""

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
from mxnet_hipress import _states, _step_settings
from mxnet_hipress._optimizers import bears_feedback
from mxnet_hipress._sums import SumArrays

_TIMEOUT_SECONDS = 300
"""To wait for enough workers, and for one that lives but is far behind; or HIPRESS_TIMEOUT."""


class StoreState(ArrayState):
    """Weights, their optimizer and the gradients of a step, by the keys' numbers."""

    module = "mxnet_hipress.elastic_store"

    def __init__(self, slots: int) -> None:
        super().__init__(check_every=100, timeout=timeout(_TIMEOUT_SECONDS))
        self.config = CompressionConfig.of("none")
        self.weights_of: dict[int, mx.nd.NDArray] = {}
        self.gradients: dict[int, mx.nd.NDArray] = {}
        """Of the keys that every step pushes."""
        self.names: dict[int, str] = {}
        """Their names, in that order."""
        self.updater: opt.Updater | None = None
        self._slots, self._sums = slots, SumArrays()

    def make_step(self) -> None:
        """Sum the gradients and makes the optimizer's step, with rank 0's learning rate.

        :raises hipress.HipressError: if a worker has died or is silent; weights have not changed
        """
        gradients = {self.names[index]: gradient for index, gradient in self.gradients.items()}
        own = np.zeros(_step_settings.SIZE)
        if self.rank == 0:  # who has been there longest: those that join come behind
            own = _step_settings.pack(self.updater.optimizer)
        gradients[_step_settings.NAME] = mx.nd.array(own, dtype=self._last_type())
        totals = dict(self._sums.reduce(self.session.compression, gradients))
        _step_settings.unpack(totals[_step_settings.NAME].asnumpy(), self.updater.optimizer)
        for index, name in self.names.items():
            total = totals[name]
            if self.size < self._slots:
                total *= self._slots / self.size
            self.updater(index, total, self.weights_of[index])
        self.applied = True
        self.session.applied()
        self.commit()

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Return the elements and type of each gradient, and of the optimizer's settings, by
        name."""
        found = {
            self.names[index]: (gradient.size, np.dtype(gradient.dtype).name)
            for index, gradient in self.gradients.items()
        }
        return {**found, _step_settings.NAME: (_step_settings.SIZE, self._last_type())}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each gradient, and of the optimizer's settings, by name."""
        found = {self.names[index]: gradient.shape for index, gradient in self.gradients.items()}
        return {**found, _step_settings.NAME: (_step_settings.SIZE,)}

    def _last_type(self) -> str:
        """Of the last gradient, with which the settings travel."""
        return np.dtype(list(self.gradients.values())[-1].dtype).name

    def summed_config(self) -> CompressionConfig:
        """Return the compression, but for the optimizer's settings."""
        as_it_is = {_step_settings.NAME: Decision(False, 1)}
        return replace(self.config, plan={**self.config.decisions, **as_it_is})

    def allows_feedback(self) -> bool:
        """Return whether the optimizer bears error feedback."""
        return bears_feedback(self.updater.optimizer)

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        about = [f"{self.names[i]} {g.shape} {g.dtype.__name__}" for i, g in self.gradients.items()]
        optimizer = type(self.updater.optimizer).__name__
        return {**super().settings(), "optimizer": optimizer, "keys": "; ".join(about)}

    def state_dict(self) -> dict[str, Any]:
        """What a worker that joins copies."""
        weights = {index: self.weights_of[index].asnumpy() for index in self.gradients}
        states = self.updater.get_states(dump_optimizer=True)
        return {**super().state_dict(), "weights": weights, "optimizer": states}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over what another worker's :meth:`state_dict` returned."""
        for index, value in saved["weights"].items():
            self.weights_of[index][:] = mx.nd.array(value, dtype=value.dtype)
        _states.load_optimizer(self.updater.optimizer, [self.updater], saved["optimizer"])
        super().load_state_dict(saved)

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """The bytes of the weights."""
        for index, name in self.names.items():
            yield name, memoryview(self.weights_of[index].asnumpy()).cast("B")

    def drop_gradients(self) -> None:
        """Keep them: they are summed again."""
