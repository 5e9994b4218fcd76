"""Outer weights in fragments, and the outer step on arrays of any framework.

``Array`` is a NumPy array or a tensor. This module uses only ``shape``, ``array[...] = values`` and
``array -= values``; a front end does the rest in :class:`Weights`.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

Array = Any


class Weights(Protocol):
    """A worker's trained weights by name, which a framework holds."""

    def check(self) -> None:
        """Raise RuntimeError if the weights that are trained have changed."""

    def copy(self, name: str) -> Array:
        """Return a new float32 copy of the weights, without gradients."""

    def subtract(self, name: str, outer: Array, out: Array) -> None:
        """Write outer weights minus weights to ``out``."""

    def update(self, name: str, outer: Array, alpha: float) -> None:
        """Set the weights to ``alpha * weights + (1 - alpha) * outer``."""

    def forget_non_finite(self) -> None:
        """Reset inner optimizer states, such as momentum, that contain a NaN or Inf.

        Otherwise the next inner step makes the weights NaN again.
        """


class OuterOptimizer(Protocol):
    """A framework's optimizer on outer weights."""

    def attach(self, outer: Mapping[str, Array]) -> None:
        """Receive all outer weights, once, before the first step."""

    def step(self, fragment: Fragment) -> None:
        """Change ``fragment.outer`` in place; ``fragment.mean`` are the gradients."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, such as momentum; keys start with the optimizer's prefix."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned.

        Args:
            state: May contain other entries.

        Raises:
            ValueError: If the state belongs to another optimizer.
        """


class Average(Protocol):
    """Mean of a fragment's pseudo-gradients over the workers."""

    def allocate(self, fragments: Sequence[Fragment]) -> None:
        """Set each ``fragment.mean`` to float32 arrays by name, which are averaged in place."""

    def start(self, fragment: Fragment, arrival: Arrival) -> None:
        """Start to average; may call ``arrival.mark()`` from any thread when it is done."""

    def finish(self, fragment: Fragment) -> bool:
        """Wait for the mean; return whether all of it is finite, the same on all workers.

        Raises:
            HipressError: If a worker died or is silent; also if it is called again then.
        """

    def state_dict(self, fragment: Fragment) -> dict[str, Any]:
        """Return the mean of a pending fragment, after waiting for it, and ``fragment.due``."""

    def load_state_dict(self, fragment: Fragment, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned, with ``due`` and ``is_pending``.

        Raises:
            ValueError: If the state belongs to other fragments.
        """


class Arrival:
    """Duration of one average, from its start to :meth:`mark`."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seconds = 0.0

    def mark(self, *_: object) -> None:
        """Record the end; later calls have no effect."""
        if not self.seconds:
            self.seconds = time.perf_counter() - self._started


class Fragment:
    """Weights synchronized in one outer step."""

    def __init__(self, number: int, outer: Mapping[str, Array]) -> None:
        self.number, self.outer = number, outer
        self.mean: dict[str, Array] = {}
        """Pseudo-gradients by name; after the average, their mean over the workers."""
        self.due = 0
        """Inner step after which the outer step is completed."""
        self.is_pending = False
        """Whether the outer step has started and is not complete."""
        self.arrival: Arrival | None = None

    @property
    def seconds(self) -> float:
        """Duration of the last average; 0 if it was loaded from a checkpoint."""
        return 0.0 if self.arrival is None else self.arrival.seconds


class OuterWeights:
    """The outer weights of a model, and the outer step of each fragment.

    Args:
        parts: Names of the weights of each fragment.
        weights: The worker's weights.
        optimizer: The outer optimizer.
        average: The mean over the workers. Elastic jobs set it in each view.
    """

    def __init__(
        self,
        parts: Sequence[Iterable[str]],
        weights: Weights,
        optimizer: OuterOptimizer,
        average: Average | None = None,
    ) -> None:
        self.weights, self.optimizer, self.average = weights, optimizer, None
        outer = {name: weights.copy(name) for part in parts for name in part}
        self._set_fragments(parts, outer)
        optimizer.attach(outer)
        if average is not None:
            self.connect(average)

    def _set_fragments(self, parts: Sequence[Iterable[str]], outer: Mapping[str, Array]) -> None:
        self.fragments = [
            Fragment(number, {name: outer[name] for name in part})
            for number, part in enumerate(parts)
        ]

    def connect(self, average: Average) -> None:
        """Use this average from now on; nothing may be pending."""
        self.average = average
        average.allocate(self.fragments)

    def split(self, parts: Sequence[Iterable[str]]) -> None:
        """Split the same outer weights into other fragments; nothing may be pending."""
        self._set_fragments(parts, dict(self.items()))
        self.connect(self.average)

    def items(self) -> Iterable[tuple[str, Array]]:
        """Return names and outer weights of all fragments."""
        return ((n, outer) for fragment in self.fragments for n, outer in fragment.outer.items())

    def copy_weights(self) -> None:
        """Set the outer weights to the worker's weights."""
        for name, outer in self.items():
            outer[...] = self.weights.copy(name)

    def start(self, fragment: Fragment, due: int = 0) -> None:
        """Start the outer step: subtract, and start to average."""
        self.weights.check()
        for name, outer in fragment.outer.items():
            self.weights.subtract(name, outer, fragment.mean[name])
        fragment.arrival = Arrival()
        self.average.start(fragment, fragment.arrival)
        fragment.due, fragment.is_pending = due, True

    def complete(self, fragment: Fragment, alpha: float = 0.0, average: bool = False) -> bool:
        """Complete the outer step: wait for the mean, change outer weights and weights.

        Args:
            fragment: A pending fragment.
            alpha: Share of its own weights that the worker keeps.
            average: Make the outer weights the mean of the workers' weights, without the
                outer optimizer.

        Returns:
            Whether the mean is finite. If it is not, there is no outer step, and the weights
            become the outer weights.
        """
        finite = self.average.finish(fragment)
        fragment.is_pending = False  # only now: after an error, the next call fails too
        if fragment.arrival is not None:
            fragment.arrival.mark()  # the callback may be late
        self.apply(fragment, alpha, average, finite)
        return finite

    def apply(self, fragment: Fragment, alpha: float, average: bool, finite: bool) -> None:
        """Use a mean that has arrived; see :meth:`complete`."""
        if not finite:
            self.weights.forget_non_finite()
        elif average:
            for name, outer in fragment.outer.items():
                outer -= fragment.mean[name]
        else:
            self.optimizer.step(fragment)
        self.update(fragment, alpha if finite else 0.0)

    def update(self, fragment: Fragment, alpha: float = 0.0) -> None:
        """Set the weights to ``alpha * weights + (1 - alpha) * outer weights``."""
        for name, outer in fragment.outer.items():
            self.weights.update(name, outer, alpha)

    def abandon(self) -> None:
        """Forget pending averages; nothing waits for them again."""
        for fragment in self.fragments:
            fragment.is_pending = False

    def state_dict(self, pending: bool = True) -> dict[str, Any]:
        """Return outer weights and the outer optimizer's state.

        Args:
            pending: Also return the means of pending fragments, after waiting for them.
        """
        found = {f"outer/{name}": copy.deepcopy(outer) for name, outer in self.items()}
        for fragment in self.fragments if pending else ():
            found.update(self.average.state_dict(fragment))
        return {**found, **self.optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.abandon()
        for name, outer in self.items():
            load(outer, state, "outer", name)
        for fragment in self.fragments if self.average is not None else ():
            fragment.arrival = None
            self.average.load_state_dict(fragment, state)
        self.optimizer.load_state_dict(state)


def load(array: Array, state: Mapping[str, Any], kind: str, name: str) -> None:
    """Copy an entry of a state to an array."""
    values = state.get(f"{kind}/{name}")
    if values is None or values.shape != array.shape:
        raise ValueError(f"the state has no {kind} of {name!r} of shape {tuple(array.shape)}")
    array[...] = values
