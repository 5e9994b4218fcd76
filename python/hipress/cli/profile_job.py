"""Workers of a profiling job, which push gradients of many sizes, one after the other.

The job's timeline (HIPRESS_TIMELINE) records every task; :mod:`hipress.planning.fitting` makes a
profile of it. Each key's name says what it is for: ``ring/tbq/65536``. A gradient in one partition
goes around a ring hop by hop, so that each message has the network, and each task its node, to
itself; co-located, one worker merges the payloads of all.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hipress.planning.fitting import GROUPS, check_place
from hipress.runtime.key_graphs import KeyGraphs
from hipress.runtime.node import Node
from hipress.topology import Graph, topologies

SIZES = tuple(1 << e for e in range(8, 24))
"""Elements of the gradients: 1 KiB to 32 MiB."""
REPEATS = 7
"""Times that each is pushed; the first does not count."""
GROUP_REPEATS = 5 * REPEATS
"""Times that each group is pushed: small differences count."""
CHECK_SIZE = 1 << 22
"""Elements of the gradient that tells how good predictions are."""
MAX_SIZE_SECONDS = 8.0
"""Seconds that one size may take uncompressed; where it takes longer, no larger ones are pushed."""


class ProfileGraphs(KeyGraphs):
    """Takes a key's topology from its name, and cuts it once."""

    def next(self, n: int, name: str = "", compress: bool = True) -> tuple[Graph, str]:
        """The graph of the key named ``topology/...``; the job alone says what is compressed."""
        topology = name.split("/")[0]
        whole = None if name.startswith("colocated/check") else 1
        graph = topologies.build(topology, n, self._num_workers, home=0, partitions=whole)
        return graph, name


def run(types: Mapping[str, Mapping[str, object]], sizes: Sequence[int] = SIZES) -> None:
    """Takes part in the job; returns when it is over.

    :param types: parameters by compression type, the same on every worker
    :param sizes: elements, ascending
    """
    node = Node()
    if node.role != "worker":
        node.serve()
        node.stop()
        return
    node._graphs = ProfileGraphs(node.num_workers, node.num_servers)
    worker = _Worker(node)
    worker.tell_place()
    for name, params in {"none": {}, **types}.items():
        node.set_gradient_compression({**params, "type": name, "min_size": 0})
        for i, size in enumerate(sizes):
            start = time.perf_counter()
            for topology in ("ring", "colocated"):
                worker.measure(f"{topology}/{name}/{size}", size)
            took = time.perf_counter() - start
            if name == "none" and worker.from_worker_0(took > MAX_SIZE_SECONDS):
                sizes = sizes[: i + 1]
                break
        worker.measure(f"colocated/check/{name}", min(CHECK_SIZE, 2 * sizes[-1]))
    node.set_gradient_compression({"type": "none"})
    worker.groups()
    node.barrier()
    node.stop()


class _Worker:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._key = 0
        random = np.random.default_rng(node.rank)
        self._gradient = random.standard_normal(max(*SIZES, CHECK_SIZE), dtype=np.float32)
        self._out = np.empty_like(self._gradient)
        self._talk = self._new("colocated/talk", 64)

    def _new(self, name: str, size: int) -> int:
        key, self._key = self._key, self._key + 1
        self._node.init_array(key, self._out[:size], name)
        return key

    def measure(self, name: str, size: int) -> None:
        """Pushes and pulls a gradient, REPEATS times, each from a barrier on."""
        key = self._new(name, size)
        for _ in range(REPEATS):
            self._node.barrier()
            self._node.pushpull(key, self._gradient[:size], self._out[:size]).wait()

    def from_worker_0(self, answer: bool) -> bool:
        """The answer of worker 0, on all."""
        votes = np.zeros(64, np.float32)
        votes[0] = answer and self._node.rank == 0
        self._node.pushpull(self._talk, votes).wait()
        return bool(votes[0] > 0.5)

    def groups(self) -> None:
        """Pushes small gradients together, and names a key after the nanoseconds for which they
        kept the processors of all workers busy."""
        cases = [(size, count) for size, counts in GROUPS.items() for count in counts]
        groups = []
        for size, count in cases:
            keys = [self._new(f"ring/group/{size}/{count}/{i}", size) for i in range(count)]
            outs = [np.empty(size, np.float32) for _ in keys]
            groups.append(self._node.group(keys, [self._gradient[:size]] * count, outs))
        busy = np.empty((GROUP_REPEATS, len(groups)))
        for repeat in busy:  # in turns, so that what else the machine does meets all alike
            for i, group in enumerate(groups):
                self._node.barrier()
                began = time.process_time()
                group.pushpull().wait()
                self._node.barrier()  # now all that others needed of this worker is done, too
                repeat[i] = time.process_time() - began
        total = np.zeros(64, np.float32)
        total[: len(groups)] = 1e9 * np.median(busy[1:], axis=0)
        self._node.pushpull(self._talk, total).wait()
        for (size, count), nanoseconds in zip(cases, total):
            self.measure(f"colocated/busy/{size}/{count}/{int(nanoseconds)}", 64)

    def tell_place(self) -> None:
        """Names a key after this machine's place: which workers share a kernel, and its cores.

        Every worker learns all machines from a sum in which each has filled its own slot; a
        key then says so in the timeline.
        """
        node = self._node
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().encode()
        slots = np.zeros(64 * node.num_workers, np.float32)
        slots[64 * node.rank] = zlib.crc32(boot) % (1 << 24)  # exact in float32
        key = self._new("colocated/machines", slots.size)
        node.pushpull(key, slots).wait()
        machines = len(set(slots[::64].tolist()))
        check_place(machines, node.num_workers)
        cores = len(os.sched_getaffinity(0))
        threads = int(os.environ.get("HIPRESS_NUM_THREADS") or 0) or max(1, min(4, cores))
        self.measure(f"colocated/place/{machines}/{cores}/{threads}", 64)
