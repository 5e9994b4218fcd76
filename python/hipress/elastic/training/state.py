"""What elastic training consists of, whatever the framework."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from hipress.config import difference
from hipress.elastic.training.outer_steps import OuterSteps

_PLAIN = (bool, int, float, str, type(None))


class Steps(Protocol):
    """The steps of one view, see :class:`hipress.elastic.training.session.Session`."""

    def applied(self) -> None: ...

    def end_step(self, figures: Mapping[str, float]) -> None: ...


class State(abc.ABC):
    """The state of a training job whose workers come and go.

    :param check_every: steps, or outer steps, between comparisons of all workers' weights, bit by
        bit
    :param timeout: seconds to wait for enough workers, and for one that lives but is far behind
    :raises ValueError: for what cannot be
    """

    module = ""
    """Where users find ``run``."""

    def __init__(self, check_every: int, timeout: float) -> None:
        if check_every < 1:
            raise ValueError(f"check_every must be 1 or more, not {check_every!r}")
        self.check_every, self.timeout = check_every, timeout
        self.step = 0
        """Steps that are complete, of all workers together."""
        self.rank, self.size, self.epoch = 0, 1, 0
        """This worker's rank in the present view, the number of its workers, and its number."""
        self.applied = False
        """True between the optimizer's step and ``commit()``."""
        self.is_part = False
        """Whether this process has trained with the others, or copied their state: what it has
        loaded by itself is no result of theirs."""
        self.session: Steps | None = None
        self.outer_steps: OuterSteps | None = None
        """Outer steps after ``sync_every`` inner steps; None without."""
        self._kept: tuple[str, ...] = ()
        self._callbacks: list[Callable[[], None]] = []

    def keep(self, kept: Mapping[str, Any]) -> None:
        """Makes attributes of more that a worker which joins copies: objects with ``state_dict()``
        and ``load_state_dict()``, and plain values.

        :raises ValueError: for what cannot be kept
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
        """Has ``callback`` called in each new view, before ``train`` is: to share data out anew."""
        self._callbacks.append(callback)

    @property
    def completed(self) -> int:
        """Number of steps, or outer steps, that the workers have completed together."""
        return self.step if self.outer_steps is None else self.outer_steps.completed

    def begin(self) -> None:
        """Begin the outer steps; called once, before the first view."""
        if self.outer_steps is not None:
            self.outer_steps.begin()

    def rejoin(self) -> None:
        """Discard inner steps that the other workers continued without.

        Called before this worker joins again.
        """
        if self.outer_steps is not None:
            self.outer_steps.reset_weights()

    def call_back(self) -> None:
        """Calls what was registered."""
        for callback in self._callbacks:
            callback()

    def commit(self, **figures: float) -> None:
        """Ends a step, after the optimizer's and all that belongs to the step.

        May not return, if the workers change now: then ``train`` is called again.

        :param figures: such as the loss, for the journal
        :raises RuntimeError: if workers have different weights
        """
        if self.session is None:
            raise RuntimeError(f"state.commit() {self.belongs}")
        self.step, self.applied = self.step + 1, False
        self.session.end_step(figures)

    @property
    def belongs(self) -> str:
        """The end of a sentence about what is called elsewhere."""
        return f"belongs into a function that {self.module}.run runs"

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        outer_steps = {} if self.outer_steps is None else self.outer_steps.settings()
        kept = {"check_every": str(self.check_every), "what is kept": ", ".join(self._kept)}
        return {"sync_every": "", **outer_steps, **kept}

    def check(self, settings: Mapping[str, str]) -> None:
        """Compares another worker's :meth:`settings` with these.

        :raises ValueError: saying how they differ
        """
        mine = self.settings()
        for name, value in settings.items():
            if mine.get(name) != value:
                raise ValueError(
                    f"this worker and the one whose state it is to copy differ in {name}: "
                    f"{difference(str(mine.get(name)), value)}; it must be the same on all workers"
                )

    def state_dict(self) -> dict[str, Any]:
        """All but the compression's part, for a checkpoint."""
        kept = {name: getattr(self, name) for name in self._kept}
        plain = {n: v if isinstance(v, _PLAIN) else v.state_dict() for n, v in kept.items()}
        steps = {} if self.outer_steps is None else {"rounds": self.outer_steps.state_dict()}
        return {"step": self.step, "kept": plain, **steps}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`state_dict` returned."""
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

    def copy(self, found: Mapping[str, Any]) -> None:
        """Restore what another worker's :meth:`to_copy` returned.

        With ``sync_every``, a worker that has made the same steps keeps its own inner optimizer and
        the user's objects.
        """
        if self.outer_steps is None:
            self.load_state_dict(found)
            return
        if 0 < found["step"] == self.step:
            self.outer_steps.load_state_dict(found["rounds"])
        else:
            self.load_state_dict(found)
        self.outer_steps.reset_weights()

    @abc.abstractmethod
    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Return the bytes of the weights that are the same on all workers after each step.

        With ``sync_every`` that is each outer step.
        """

    @abc.abstractmethod
    def drop_gradients(self) -> None:
        """Forgets the gradients of a step that is not complete."""
