"""State of error feedback that passes from one view to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hipress.runtime.error_feedback import OwnState
from hipress.torch.elastic.tuned import ViewSynchronizer
from hipress.torch.synchronizer import Synchronizer


class Carried:
    """Residuals of one worker, and state that is the same on all workers: momentum and steps.

    A worker that joins has no residual. The residual of a departed worker is discarded.
    """

    def __init__(self) -> None:
        self._states: dict[str, OwnState] = {}
        self._momentum: dict[str, tuple[int, torch.Tensor]] = {}
        self._step = 0
        self.choice: Mapping[str, Any] | None = None
        """Choice of type "auto", see :class:`hipress.torch.elastic.tuned.ViewSynchronizer`."""
        self.undecided: Synchronizer | None = None
        """Compression whose last step counts if this worker can copy its result, otherwise None.

        If no member has the result, the step is rolled back. A worker that has the result may die
        before other workers copy it.
        """

    def take_from(self, compression: Synchronizer) -> None:
        """Adopt the states of a compression whose view has ended."""
        self.undecided = None
        self._states = compression.error_feedback.carry_over(compression.sizes)
        self._momentum = dict(compression.shared.state()) if compression.shared else {}
        self._step = compression.step
        if isinstance(compression, ViewSynchronizer):
            self.choice = compression.choice()

    def give_to(self, compression: Synchronizer) -> None:
        """Give a new compression its states, before its first step."""
        compression.step = self._step
        compression.reshard(self._states)
        if compression.shared:
            for name, (offset, values) in self._momentum.items():
                compression.shared.load(name, offset, values)

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins must also have."""
        momentum = {n: [offset, values.cpu()] for n, (offset, values) in self._momentum.items()}
        sizes = {n: [state.size, state.step] for n, state in self._states.items()}
        found = {"step": self._step, "momentum": momentum, "encoded": sizes}
        return {**found, "choice": self.choice}

    def copy(self, found: Mapping[str, Any]) -> None:
        """Adopt another worker's :meth:`to_copy`, but keep this worker's residuals."""
        if self.undecided is not None:
            self.undecided.commit()
            self.take_from(self.undecided)
        self._step = found["step"]
        self.choice = found["choice"]
        self._momentum = {n: (offset, values) for n, (offset, values) in found["momentum"].items()}
        for name, (size, step) in found["encoded"].items():
            self._states.setdefault(name, OwnState(size)).step = step

    @staticmethod
    def norm(compression: Synchronizer) -> float:
        """Return the 2-norm of this worker's residuals, including those that no task uses yet."""
        return compression.error_feedback.norm()
