"""State of a training job in elastic training, in any framework."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hipress.config import difference
from hipress.elastic.training.outer_steps import OuterSteps

_PLAIN = (bool, int, float, str, type(None))


class TrainingState(abc.ABC):
    """State of a training job whose workers come and go.

    Args:
        check_every: steps, or outer steps, between bitwise comparisons of all workers' weights
        timeout: seconds to wait for enough workers, and for a worker that lives but is far behind

    Raises:
        ValueError: for a wrong argument
    """

    module = ""
    """Module that has ``run`` for users."""

    def __init__(self, check_every: int, timeout: float) -> None:
        if check_every < 1:
            raise ValueError(f"check_every must be 1 or more, not {check_every!r}")
        self.check_every, self.timeout = check_every, timeout
        self.step = 0
        """Number of steps that all workers have completed together."""
        self.rank, self.size, self.epoch = 0, 1, 0
        """This worker's rank in the present view, the view's size, and its epoch."""
        self.applied = False
        """Whether the optimizer has made its step and ``commit()`` has not been called."""
        self.is_part = False
        """Whether this process has trained in the job, or copied its state.

        A state that it loaded by itself is not a result of the job.
        """
        self.session: Any = None
        """The present :class:`hipress.elastic.training.session.Session`, or None."""
        self.outer_steps: OuterSteps | None = None
        """Outer steps after ``sync_every`` inner steps, or None."""
        self._kept: tuple[str, ...] = ()
        self.reset_callbacks: list[Callable[[], None]] = []
        """Functions to call in each new view, before the training function."""

    def keep(self, kept: Mapping[str, Any]) -> None:
        """Add attributes that a worker which joins copies.

        Args:
            kept: objects with ``state_dict()`` and ``load_state_dict()``, or plain values, by name

        Raises:
            ValueError: for a value of another kind, or a name in use
        """
        for name, value in kept.items():
            if hasattr(self, name):
                raise ValueError(f"{name!r} is a name of the state's own: give it another one")
            if not (isinstance(value, _PLAIN) or hasattr(value, "load_state_dict")):
                raise ValueError(
                    f"{name} is a {type(value).__name__}: what is kept must have state_dict() and "
                    "load_state_dict(), or be a number, a text or None"
                )
            setattr(self, name, value)
        self._kept = tuple(kept)

    def register_reset_callback(self, callback: Callable[[], None]) -> None:
        """Register a function to call in each new view before ``train``, such as to split data."""
        self.reset_callbacks.append(callback)

    @property
    def completed(self) -> int:
        """Number of steps, or outer steps, that the workers have completed together."""
        return self.step if self.outer_steps is None else self.outer_steps.completed

    def commit(self, **figures: float) -> None:
        """End a step, after the optimizer's step and everything that belongs to it.

        If the workers change now, this may not return, and ``train`` is called again.

        Args:
            figures: values for the journal, such as the loss

        Raises:
            RuntimeError: if workers have different weights
        """
        if self.session is None:
            raise RuntimeError(f"state.commit() {self.belongs}")
        self.step, self.applied = self.step + 1, False
        self.session.end_step(figures)

    @property
    def belongs(self) -> str:
        """End of an error message for a call outside of a training function."""
        return f"belongs into a function that {self.module}.run runs"

    def settings(self) -> dict[str, str]:
        """Return texts that must be the same on all workers, by name."""
        outer_steps = {} if self.outer_steps is None else self.outer_steps.settings()
        kept = {"check_every": str(self.check_every), "what is kept": ", ".join(self._kept)}
        return {"sync_every": "", **outer_steps, **kept}

    def check(self, settings: Mapping[str, str]) -> None:
        """Compare another worker's :meth:`settings` with these.

        Raises:
            ValueError: if they differ; the message lists the differences
        """
        mine = self.settings()
        for name, value in settings.items():
            if mine.get(name) != value:
                raise ValueError(
                    f"this worker and the one whose state it is to copy differ in {name}: "
                    f"{difference(str(mine.get(name)), value)}; it must be the same on all workers"
                )

    def state_dict(self) -> dict[str, Any]:
        """Return everything except the compression's state, for a checkpoint."""
        kept = {name: getattr(self, name) for name in self._kept}
        plain = {n: v if isinstance(v, _PLAIN) else v.state_dict() for n, v in kept.items()}
        steps = {} if self.outer_steps is None else {"rounds": self.outer_steps.state_dict()}
        return {"step": self.step, "kept": plain, **steps}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for name, value in saved["kept"].items():
            present = getattr(self, name)
            if isinstance(present, _PLAIN):
                setattr(self, name, value)
            else:
                present.load_state_dict(value)
        self.step, self.applied = saved["step"], False
        if self.outer_steps is not None and "rounds" in saved:
            self.outer_steps.load_state_dict(saved["rounds"])

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins or is behind must :meth:`copy`.

        After an outer step the outer weights may stand for the weights.
        """
        return self.state_dict()

    def copy(self, saved: Mapping[str, Any]) -> None:
        """Restore what another worker's :meth:`to_copy` returned.

        With ``sync_every``, a worker that has made the same steps keeps its own inner optimizer and
        the user's objects.
        """
        if self.outer_steps is None:
            self.load_state_dict(saved)
            return
        if 0 < saved["step"] == self.step:
            self.outer_steps.load_state_dict(saved["rounds"])
        else:
            self.load_state_dict(saved)
        self.outer_steps.reset_weights()

    @abc.abstractmethod
    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Return the bytes of the weights that are the same on all workers after each step.

        With ``sync_every`` that is each outer step.
        """

    @abc.abstractmethod
    def drop_gradients(self) -> None:
        """Drop the gradients of an incomplete step."""
