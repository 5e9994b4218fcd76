"""DiLoCo in a job whose workers stay: pseudo-gradients are summed by the node, as gradients are."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hipress import files, states
from hipress.diloco.outer import Fragment, Optimizer, State, Weights
from hipress.errors import HipressError
from hipress.fragments import Rounds, Schedule, check_fragments, cut
from hipress.group import Group
from hipress.node import Node
from hipress.operations import Pending

_WHAT = "outer weights"
_log = logging.getLogger("hipress")


class DiLoCo:
    """Synchronises a worker's weights with those of the others.

    All workers make it together, with the same arguments, and begin with worker 0's weights.

    :param node: of the job, whose compression is set; None: of a job of one
    :param keys: numbers of keys that are free, the same on all workers and one after the other
    :param weights: the worker's own
    :param optimizer: the outer one
    :param schedule, delay, alpha: see :class:`hipress.fragments.Rounds`
    :param fragments: into how many parts of about equal size the model is cut
    :raises ValueError: for what cannot be
    :raises HipressError: on all workers, if their settings or models differ, or somebody is missing
    """

    def __init__(
        self,
        node: Node | None,
        keys: Iterator[int],
        weights: Weights,
        optimizer: Optimizer,
        schedule: Schedule,
        fragments: int = 1,
        delay: int = 0,
        alpha: float = 0.0,
    ) -> None:
        names, parts = list(weights.shapes()), parts_of(weights, schedule.sync_every, fragments)
        self._node, self._optimizer = node, optimizer
        self._fragments = [
            Fragment(number, weights, [names[i] for i in part]) for number, part in enumerate(parts)
        ]
        self.rounds = Rounds(
            self._fragments, self._begin, self._take, schedule, delay, alpha
        )
        for fragment in self._fragments:
            fragment.begin_with_weights()
        about = f"{schedule}, delay {delay}, {[len(part) for part in parts]}"
        self._exchanges = [
            _Exchange(node, keys, fragment, f"DiLoCo: {about}, fragment {fragment.number}")
            for fragment in self._fragments
            if node is not None
        ]
        for fragment in self._fragments:
            fragment.update()

    @property
    def _workers(self) -> int:
        return 1 if self._node is None else self._node.num_workers

    def _begin(self, fragment: Fragment, due: int) -> None:
        finite = fragment.subtract()
        if self._node is not None:
            self._exchanges[fragment.number].start(fragment, finite)
        fragment.due, fragment.under_way = due, True

    def _take(self, fragment: Fragment, alpha: float, average: bool) -> bool:
        lost = self._node is not None and not self._exchanges[fragment.number].wait()
        fragment.under_way = False
        finite = fragment.take(self._optimizer, self._workers, alpha, lost, average)
        if not finite:
            _log.warning(
                "step %d: a pseudo-gradient of fragment %d has a NaN or Inf; all weights are those "
                "of the synchronisation before again", self.rounds.step, fragment.number,
            )  # fmt: skip
        return finite

    def save(self, path: str | os.PathLike[str], more: State | None = None) -> None:
        """Saves outer weights, the outer optimizer, what is under way, and residuals.

        Every worker calls it, after the same step. Each writes ``path.diloco-RANK``, and what
        compression remembers as :func:`hipress.states.save` does.

        :param more: of the worker's own, which :meth:`load` returns
        :raises HipressError: if it cannot be written; what was there is there still
        """
        found: State = {"step": np.array(self.rounds.step), **(more or {})}
        found["workers"] = np.array(self._workers)
        for exchange in self._exchanges:
            found.update(exchange.state_dict())
        for fragment in self._fragments:
            found.update(fragment.state_dict())
        optimizer = self._optimizer.state_dict()
        found.update({f"optimizer/{name}": value for name, value in optimizer.items()})
        if self._node is not None:
            states.save(self._node, path, *self._range())
            residuals = states.path_of(path, self._node.rank).exists()
            found["residuals"] = np.array(residuals)
        content = io.BytesIO()
        np.savez(content, **found)
        try:
            files.write(self._path(path), _WHAT, content.getvalue())
        except files.FileError as error:
            raise HipressError(str(error)) from error

    def load(self, path: str | os.PathLike[str]) -> State:
        """Goes on from what :meth:`save` saved in a job of the same shape. Every worker calls it.
        The worker's own weights and its inner optimizer are the caller's.

        :returns: what was saved, by name
        :raises HipressError: for no file, one that is not whole or another job's
        :raises ValueError: if it is of another model or outer optimizer
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
        saved = int(found.get("workers", self._workers))
        if saved != self._workers:
            raise HipressError(
                f"{own} is of a job of {saved} workers, and this one has {self._workers}"
            )
        for fragment in self._fragments:
            fragment.load_state_dict(found)
        for exchange in self._exchanges:
            exchange.load_state_dict(found)
        self._optimizer.load_state_dict(
            {n.partition("/")[2]: v for n, v in found.items() if n.startswith("optimizer/")}
        )
        if self._node is not None and found.get("residuals"):
            parts = states.read(self._node, path)
            if parts is None:
                missing = states.path_of(path, self._node.rank)
                raise HipressError(f"{own} needs {missing}, and there is no such file")
            states.load(self._node, parts, *self._range())
        self.rounds.step = int(found["step"])
        return found

    def _path(self, path: str | os.PathLike[str]) -> Path:
        return Path(f"{os.fspath(path)}.diloco-{0 if self._node is None else self._node.rank}")

    def _range(self) -> tuple[int, int]:
        """The numbers of the keys."""
        return self._exchanges[0].keys[0], self._exchanges[-1].keys[-1]


def parts_of(weights: Weights, sync_every: int, fragments: int) -> list[list[int]]:
    """The indices of each fragment's weights.

    :raises ValueError: for what cannot be
    """
    check_fragments(fragments, sync_every)
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in weights.shapes().values()]
    if not any(sizes):
        raise ValueError("there is no weight to synchronise")
    return cut(sizes, fragments)


class _Exchange:
    """The keys of a fragment, and their sums under way.

    Beside its weights a fragment has a key of one element: on how many workers there is a NaN or
    Inf, which some codecs have no code for. Such a worker sends zeros. That key is never
    compressed.

    :param about: a text that must be the same on all workers
    """

    def __init__(self, node: Node, keys: Iterator[int], fragment: Fragment, about: str) -> None:
        self.keys: list[int] = []
        self._lost, self._name = np.zeros(1, np.float32), f"lost/{fragment.number}"
        self._pending: Pending | None = None
        arrays = []
        for name, outer in fragment.outer.items():
            if outer.size:  # the store knows no keys of zero elements
                self.keys.append(next(keys))
                node.init_array(self.keys[-1], outer, name)
                node.pull(self.keys[-1], outer).wait()
                arrays.append(fragment.sums[name])
        self.keys.append(next(keys))
        node.init_array(self.keys[-1], self._lost, about, compress=False)
        self._group: Group = node.group(self.keys, [*arrays, self._lost])

    def start(self, fragment: Fragment, finite: bool) -> None:
        """Starts to replace ``fragment.sums`` by the sums over the workers."""
        self._lost[0] = not finite
        if not finite:
            for values in fragment.sums.values():
                values[...] = 0
        self._pending = self._group.pushpull()

    def wait(self) -> bool:
        """Waits until the sums are there; returns whether all workers' parts were finite.

        :raises HipressError: if a worker has died or is silent
        """
        if self._pending is not None:
            self._pending.wait()
            self._pending = None
        return not self._lost[0]

    def state_dict(self) -> State:
        """What is under way, when it is over."""
        self.wait()
        return {self._name: self._lost.copy()}

    def load_state_dict(self, state: State) -> None:
        """Goes on from what :meth:`state_dict` returned, with the fragment's sums."""
        self._pending, self._lost[0] = None, state[self._name][0]
