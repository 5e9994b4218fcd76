"""Lower bounds of a step's time: the busiest link's, and the codecs' on this machine's cores."""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hipress import Compressor
from hipress.native import library
from hipress.topology import TOPOLOGIES, Op, build
from hipress.topology.graph import GRADIENT, PLAIN, Role

ELEMENTS = 256 * 1024  # of a partition
COUNT = 32  # more partitions than the caches hold
MIN_SIZE = 1024  # smaller gradients are not compressed


def split(compression: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a codec's name and parameters from the argument of set_gradient_compression."""
    params = dict(compression)
    for name in ("pull", "min_size"):
        params.pop(name, None)
    return params.pop("type", "none"), params


class Speed:
    """Processor seconds per element of a codec's operations on partitions outside the cache.

    Each is the median of its measurements, because a machine's speed changes from minute to minute.
    """

    def __init__(self, compression: dict[str, Any], data: np.ndarray) -> None:
        name, params = split(compression)
        self._data = data
        self._codecs = [Compressor(name, **params) for _ in range(COUNT)]
        self._identity = name == "none"
        payloads = [codec.encode(row) for codec, row in zip(self._codecs, data, strict=True)]
        self._payloads = [np.frombuffer(payload, np.uint8) for payload in payloads]
        self._samples: dict[str, list[float]] = {}

    def __getitem__(self, operation: str) -> float:
        """Return the seconds of encode, decode, add, or of "merge 1" or "merge 4" payloads."""
        return statistics.median(self._samples[operation])

    def bytes_of(self, count: int) -> int:
        """Return the bytes of a payload of so many elements, as in the sample if values matter."""
        codec, sample = self._codecs[0], self._payloads
        if codec.fixed_size:
            return codec.max_bytes(count)
        return round(statistics.mean(payload.size for payload in sample) * count / ELEMENTS)

    def measure(self) -> None:
        """Measure all operations again."""
        codecs, data = self._codecs, self._data
        calls: dict[str, Callable[[int], Any]] = {
            "encode": lambda i: codecs[i].encode(data[i]),
            "decode": self._decode,
            "add": lambda i: np.add(data[i], data[i - 1], out=data[i]),
            "merge 1": lambda i: self._merge(i, 1),
            "merge 4": lambda i: self._merge(i, 4),
        }
        for operation, call in calls.items():
            free = self._identity and operation in ("encode", "decode")  # needs no separate pass
            seconds = 0.0 if free else self._best(call)
            self._samples.setdefault(operation, []).append(seconds)

    def _best(self, call: Callable[[int], Any]) -> float:
        best = float("inf")
        for _ in range(5):
            began = time.process_time()  # other programs must not raise the bound
            for i in range(COUNT):
                call(i)
            best = min(best, time.process_time() - began)
        return best / COUNT / ELEMENTS

    def _decode(self, i: int) -> None:
        payload = self._payloads[i]
        library.check_call(
            library.lib.HipressCodecDecode(
                self._codecs[i]._handle,
                payload.ctypes.data,
                payload.size,
                ELEMENTS,
                0,
                self._data[i].ctypes.data,
            )
        )

    def _merge(self, i: int, count: int) -> None:
        payloads = [self._payloads[(i + k) % COUNT] for k in range(count)]
        addresses = (ctypes.c_void_p * count)(*(payload.ctypes.data for payload in payloads))
        sizes = (ctypes.c_int64 * count)(*(payload.size for payload in payloads))
        library.check_call(
            library.lib.HipressCodecDecodeSum(
                self._codecs[0]._handle,
                count,
                addresses,
                sizes,
                ELEMENTS,
                0,
                self._data[i].ctypes.data,
            )
        )


class Speeds:
    """Speeds of each codec of a run, which measures them from time to time."""

    def __init__(self, compressions: Sequence[dict[str, Any]]) -> None:
        self._random = np.random.default_rng(0)
        self._data = np.empty((COUNT, ELEMENTS), np.float32)
        self._fill()
        self._speeds = {json.dumps(c): Speed(c, self._data) for c in compressions}

    def _fill(self) -> None:
        self._random.standard_normal(dtype=np.float32, out=self._data)

    def measure(self) -> None:
        """Measure each codec again."""
        for speed in self._speeds.values():
            self._fill()
            speed.measure()

    def of(self, compression: dict[str, Any]) -> Speed:
        """Return the speed of a codec."""
        return self._speeds[json.dumps(compression)]


def bounds(
    topology: str,
    compression: dict[str, Any],
    sizes: Sequence[int],
    nodes: int,
    speeds: Speeds,
    bits: float,
) -> tuple[float, float]:
    """Return the seconds of the busiest link, and those of all nodes' codecs on these cores.

    Args:
        sizes: Elements of each gradient.
        bits: Bits that a link carries per second.
    """
    speed = speeds.of(compression)
    sent, received, compute = [0.0] * nodes, [0.0] * nodes, 0.0
    for key, size in enumerate(sizes):
        servers = nodes if TOPOLOGIES[topology].needs_servers else 0
        graph = build(topology, size, nodes, servers, home=key)
        compressed = size >= MIN_SIZE

        def bytes_of(count: int, compressed=compressed) -> int:
            return speed.bytes_of(count) if compressed else 4 * count

        for node, tasks in graph.tasks.items():
            for task in tasks:
                count = graph.partitions[task.partition].count
                if task.op == Op.SEND and task.peer.rank != node.rank:
                    sent[node.rank] += bytes_of(count) + 64
                    received[task.peer.rank] += bytes_of(count) + 64
                elif task.op == Op.ENCODE and task.num_summands != PLAIN and compressed:
                    compute += count * speed["encode"]
                elif task.op == Op.DECODE and node.role == Role.WORKER and compressed:
                    compute += count * speed["decode"]
                elif task.op == Op.MERGE and GRADIENT in task.inputs:
                    others = len(task.inputs) - 1
                    compute += count * others * (speed["merge 1"] + speed["add"])
                elif task.op == Op.MERGE:
                    compute += count * speed["merge 4"] * len(task.inputs) / 4
    return max(*sent, *received) * 8 / bits, compute / (os.cpu_count() or 1)
