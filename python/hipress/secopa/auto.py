"""``plan: 'auto'``: a job finds out by itself from which size on compression pays.

All workers together push gradients of a few sizes over the job's own topology, uncompressed and
compressed, several at once as in training, and time them. They add up what they measured (the
logarithms, so that no slow worker outweighs the others), worker 0 fits a curve to each and finds
the least size at which compression is faster; all take its answer. A gradient of fewer elements
goes uncompressed. If compression pays at no size, nothing is compressed.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from hipress.secopa.curve import Curve, fit

if TYPE_CHECKING:
    from hipress.node import Node

SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)
"""Elements of the gradients that are timed."""
AT_ONCE = 4
TOGETHER = 1 << 17
"""Gradients of a size under way together: so many at least, and so many elements in all. Small ones
share a link with others in training; one alone would pass in a burst."""
ROUNDS = 4
"""Times that each is pushed; the first does not count, the least of the others does."""
GAIN = 0.97
"""Compression must take at most this part of the uncompressed time."""
LARGEST = 1 << 30
"""Elements up to which the curves are compared."""
TIMEOUT = 120.0
FIRST_KEY = 1 << 62
"""Keys from here on are these; front ends count theirs from 0."""

_log = logging.getLogger("hipress.secopa")


def threshold(raw: Curve, compressed: Curve) -> int | None:
    """The least size (a power of two times 1, 1.25, 1.5 or 1.75) from which on compression gains.

    None if it gains at no size, or no longer at the largest.
    """
    sizes = [int((4 + q) * (1 << e) / 4) for e in range(8, LARGEST.bit_length()) for q in range(4)]
    least = None
    for size in reversed(sizes):
        if compressed(size) > GAIN * raw(size):
            break
        least = size
    return least


class AutoPlan:
    """Measures on a node that has just joined; every method is collective."""

    def __init__(self, node: Node) -> None:
        self._node = node
        random = np.random.default_rng(node.rank)
        self._gradient = 0.01 * random.standard_normal(SIZES[-1], dtype=np.float32)
        self._out = np.empty(AT_ONCE * SIZES[-1], np.float32)
        self._keys: dict[int, list[int]] = {}
        self._next = FIRST_KEY
        self._talk = self._new(2 * len(SIZES), "agreement")

    def _new(self, size: int, name: str) -> int:
        key, self._next = self._next, self._next + 1
        self._node.init_array(key, np.zeros(size, np.float32), f"hipress/auto/{name}")
        return key

    def decide(
        self, params: Mapping[str, object], compress: Callable[[dict[str, object]], None]
    ) -> dict[str, object]:
        """``params`` with the min_size that pays, or type none.

        :param compress: sets compression parameters
        :raises HipressError: if a node fails meanwhile
        """
        node = self._node
        plain = {"type": "none", **_travel(params)}
        times = []
        for wish in (plain, {**params, "min_size": 0}):
            compress(wish)
            times.append([self._seconds(size) for size in SIZES])
        compress(plain)
        agreed = self._sum(np.log(np.array(times, np.float64)).ravel()) / node.num_workers
        least = self._from_worker_0(np.exp(agreed).reshape(2, -1))
        if least is None:
            if node.rank == 0:
                _log.warning(
                    "plan auto: compression with %s gains nothing here: nothing is compressed",
                    params.get("type"),
                )
            return plain
        if node.rank == 0:
            _log.info("plan auto: %s pays from %d elements on", params.get("type"), least)
        return {**params, "min_size": max(least, int(params.get("min_size", 0)))}

    def _seconds(self, size: int) -> float:
        node = self._node
        if size not in self._keys:
            count = max(AT_ONCE, TOGETHER // size)
            self._keys[size] = [self._new(size, f"{size}/{i}") for i in range(count)]
        found = []
        for _ in range(ROUNDS):
            node.barrier()
            start = time.perf_counter()
            pending = [
                node.pushpull(key, self._gradient[:size], self._out[i * size : (i + 1) * size])
                for i, key in enumerate(self._keys[size])
            ]
            for operation in pending:
                operation.wait(TIMEOUT)
            found.append(time.perf_counter() - start)
        return min(found[1:])

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over all workers: the same bits on each."""
        array = values.astype(np.float32)
        self._node.pushpull(self._talk, array).wait(TIMEOUT)
        return array

    def _from_worker_0(self, times: np.ndarray) -> int | None:
        """Worker 0's conclusion, on all: another machine's arithmetic may round otherwise."""
        message = np.zeros(2 * len(SIZES))
        if self._node.rank == 0:
            raw, compressed = (fit(SIZES, row).curve for row in times)
            least = threshold(raw, compressed)
            # A power of two times a number of two bits: exact as float32.
            message[0] = 0 if least is None else least
        answer = self._sum(message)[0]
        return int(answer) if answer > 0 and math.isfinite(answer) else None


def _travel(params: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in params.items() if k in ("topology", "devices_per_host")}
