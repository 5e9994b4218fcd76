"""DiLoCo in a job of the node in Python, whose workers stay; used by MXNet and Keras."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hipress.base import files
from hipress.errors import HipressError
from hipress.local_sgd.arrays import ArrayWeights, divide_if_finite, is_finite
from hipress.local_sgd.fragment_scheduler import FragmentScheduler
from hipress.local_sgd.outer import Arrival, Fragment, OuterOptimizer, OuterWeights, load
from hipress.local_sgd.schedule import Schedule, split
from hipress.runtime import states
from hipress.runtime.group import Group
from hipress.runtime.node import Node
from hipress.runtime.operations import Pending

_WHAT = "outer weights"
State = dict[str, np.ndarray]


class NodeDiLoCo:
    """DiLoCo on NumPy arrays, with files of its state.

    All workers make it together, with the same arguments, and start from worker 0's weights.

    Args:
        node: Node of the job, with its compression set; None in a job of one worker.
        keys: Unused key numbers in sequence, the same on all workers.
        weights: The worker's weights.
        optimizer: The outer optimizer.
        schedule: Inner steps after which fragments start.
        fragments: Number of parts of about equal size.

    Raises:
        ValueError: If an argument is out of range.
        HipressError: On all workers, if settings or models differ, or a worker is missing.
    """

    def __init__(
        self,
        node: Node | None,
        keys: Iterator[int],
        weights: ArrayWeights,
        optimizer: OuterOptimizer,
        schedule: Schedule,
        fragments: int = 1,
    ) -> None:
        schedule.check_fragments(fragments)
        shapes = weights.shapes()
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()]
        if not any(sizes):
            raise ValueError("there is no weight to synchronize")
        parts, names = split(sizes, fragments), list(shapes)
        about = f"DiLoCo: {schedule}, {[len(part) for part in parts]}"
        self._node, self._average = node, NodeAverage(node, keys, about)
        named = [[names[index] for index in part] for part in parts]
        self.outer = OuterWeights(named, weights, optimizer, self._average)
        self.scheduler = FragmentScheduler(self.outer, schedule)
        for fragment in self.outer.fragments:
            self.outer.update(fragment)

    def save(self, path: str | os.PathLike[str], more: State | None = None) -> None:
        """Save outer weights, the outer optimizer, pending fragments and residuals.

        Every worker calls it, after the same step. Each writes ``path.diloco-RANK``, and residuals
        as :func:`hipress.runtime.states.save` does.

        Args:
            path: Start of the files' names.
            more: Entries of the worker, which :meth:`load` returns.

        Raises:
            HipressError: If a file cannot be written; the previous one stays.
        """
        found: State = {"step": np.array(self.scheduler.step), **(more or {})}
        found["workers"] = np.array(self._average.workers)
        found.update(self.outer.state_dict())
        if self._node is not None:
            states.save(self._node, path, *self._average.key_range())
            residuals = states.path_of(path, self._node.rank).exists()
            found["residuals"] = np.array(residuals)
        content = io.BytesIO()
        np.savez(content, **found)
        try:
            files.write(self._path(path), _WHAT, content.getvalue())
        except files.FileError as error:
            raise HipressError(str(error)) from error

    def load(self, path: str | os.PathLike[str]) -> State:
        """Restore what :meth:`save` saved in a job of the same shape; every worker calls it.

        The caller restores the worker's weights and inner optimizer.

        Returns:
            The saved entries by name.

        Raises:
            HipressError: If the file is missing, damaged or from another job.
            ValueError: If it is from another model or outer optimizer.
        """
        own = self._path(path)
        try:
            with np.load(own, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except FileNotFoundError:
            message = f"cannot read the {_WHAT} {own}: there is no such file"
            raise HipressError(message) from None
        except Exception as error:  # a damaged archive raises errors of many kinds
            raise HipressError(f"cannot read the {_WHAT} {own}: {error}") from error
        if "step" not in found:
            raise HipressError(f"{own} holds no {_WHAT}")
        workers = self._average.workers
        saved = int(found.get("workers", workers))
        if saved != workers:
            raise HipressError(f"{own} is of a job of {saved} workers, and this one has {workers}")
        self.outer.load_state_dict(found)
        if self._node is not None and found.get("residuals"):
            parts = states.read(self._node, path)
            if parts is None:
                missing = states.path_of(path, self._node.rank)
                raise HipressError(f"{own} needs {missing}, and there is no such file")
            states.load(self._node, parts, *self._average.key_range())
        self.scheduler.step = int(found["step"])
        return found

    def _path(self, path: str | os.PathLike[str]) -> Path:
        return Path(f"{os.fspath(path)}.diloco-{0 if self._node is None else self._node.rank}")


class NodeAverage:
    """Mean of pseudo-gradients in the node's keys, one key per weight.

    Each fragment has one more key, of one element that is not compressed: the number of workers
    with a NaN or Inf, which some codecs cannot encode. Such a worker sends zeros.

    Args:
        node: Node of the job; None in a job of one worker.
        keys: See :class:`NodeDiLoCo`.
        about: Text that must be the same on all workers.
    """

    def __init__(self, node: Node | None, keys: Iterator[int], about: str) -> None:
        self._node, self._free_keys, self._about = node, keys, about
        self.workers = 1 if node is None else node.num_workers
        self._keys: list[int] = []
        self._groups: list[Group] = []
        self._pending: dict[int, Pending] = {}
        self._lost: list[np.ndarray] = []

    def allocate(self, fragments: Sequence[Fragment]) -> None:
        """Make the keys together with the other workers; outer weights become worker 0's."""
        for fragment in fragments:
            fragment.mean = {name: np.zeros_like(outer) for name, outer in fragment.outer.items()}
            self._lost.append(np.zeros(1, np.float32))
            if self._node is not None:
                self._groups.append(self._group(self._node, fragment))

    def _group(self, node: Node, fragment: Fragment) -> Group:
        keys, arrays, lost = [], [], self._lost[fragment.number]
        for name, outer in fragment.outer.items():
            if outer.size:  # the store has no keys of zero elements
                keys.append(next(self._free_keys))
                node.init_array(keys[-1], outer, name)
                node.pull(keys[-1], outer).wait()
                arrays.append(fragment.mean[name])
        keys.append(next(self._free_keys))
        about = f"{self._about}, fragment {fragment.number}"
        node.init_array(keys[-1], lost, about, compress=False)
        self._keys += keys
        return node.group(keys, [*arrays, lost])

    def key_range(self) -> tuple[int, int]:
        """Return the first and the last key."""
        return self._keys[0], self._keys[-1]

    def start(self, fragment: Fragment, arrival: Arrival) -> None:
        """Start to sum; see :class:`hipress.local_sgd.outer.Average`."""
        finite = is_finite(fragment.mean.values())
        self._lost[fragment.number][0] = not finite
        if self._node is None:
            return
        if not finite:
            for values in fragment.mean.values():
                values[...] = 0
        self._pending[fragment.number] = self._groups[fragment.number].pushpull()

    def _wait(self, number: int) -> None:
        if number in self._pending:
            self._pending[number].wait()
            del self._pending[number]

    def finish(self, fragment: Fragment) -> bool:
        """Wait for the mean; return whether all workers' pseudo-gradients were finite."""
        self._wait(fragment.number)
        lost = bool(self._lost[fragment.number][0])
        return not lost and divide_if_finite(fragment.mean, self.workers)

    def state_dict(self, fragment: Fragment) -> dict[str, Any]:
        """Return the sums of a pending fragment."""
        number = fragment.number
        self._wait(number)
        found: dict[str, Any] = {}
        if self._node is not None:
            found[f"lost/{number}"] = self._lost[number].copy()
        if fragment.is_pending:
            found[f"under_way/{number}"] = np.array(fragment.due)
            found.update({f"sums/{name}": sums.copy() for name, sums in fragment.mean.items()})
        return found

    def load_state_dict(self, fragment: Fragment, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        number = fragment.number
        self._pending.pop(number, None)
        self._lost[number][0] = state[f"lost/{number}"][0] if self._node is not None else 0
        due = state.get(f"under_way/{number}")
        if due is not None:
            for name, sums in fragment.mean.items():
                load(sums, state, "sums", name)
            fragment.due, fragment.is_pending = int(due), True
