"""Workers of a profiling job, which push gradients of many sizes in turn.

The job's timeline (HIPRESS_TIMELINE) records every task, and :mod:`hipress.planning.fitting` fits a
profile to it. A key's name states its purpose: ``ring/tbq/65536``. With a ring, a gradient in one
partition is sent hop by hop, so that each message has the whole network, and each task its whole
node. With co-located servers, one worker merges the payloads of all workers.
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
"""Number of pushes of each gradient. The first is ignored."""
GROUP_REPEATS = 5 * REPEATS
"""Number of pushes of each group. It is larger because small differences count."""
CHECK_SIZE = 1 << 22
"""Elements of the gradient by which predictions are checked."""
MAX_SIZE_SECONDS = 8.0
"""Largest seconds of one uncompressed size. Beyond them no larger size is pushed."""


class ProfileGraphs(KeyGraphs):
    """Graphs of keys whose names choose the topology, in one partition."""

    def next(self, n: int, name: str = "", compress: bool = True) -> tuple[Graph, str]:
        """Return the graph of the key ``topology/...``. The job alone decides about compression."""
        topology = name.split("/")[0]
        partitions = None if name.startswith("colocated/check") else 1
        graph = topologies.build(topology, n, self._num_workers, home=0, partitions=partitions)
        return graph, name


def run(types: Mapping[str, Mapping[str, object]], sizes: Sequence[int] = SIZES) -> None:
    """Take part in the job, and return at its end."""
    node = Node()
    if node.role != "worker":
        node.serve()
        node.stop()
        return
    node._graphs = ProfileGraphs(node.num_workers, node.num_servers)
    worker = _Worker(node)
    worker.name_place()
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
        """Push and pull a gradient REPEATS times, each time after a barrier."""
        key = self._new(name, size)
        for _ in range(REPEATS):
            self._node.barrier()
            self._node.pushpull(key, self._gradient[:size], self._out[:size]).wait()

    def from_worker_0(self, answer: bool) -> bool:
        """Return worker 0's answer on all workers."""
        votes = np.zeros(64, np.float32)
        votes[0] = answer and self._node.rank == 0
        self._node.pushpull(self._talk, votes).wait()
        return bool(votes[0] > 0.5)

    def groups(self) -> None:
        """Push small gradients together, and name a key after the used processor time.

        The name has the nanoseconds for which they occupied the processors of all workers.
        """
        cases = [(size, count) for size, counts in GROUPS.items() for count in counts]
        groups = []
        for size, count in cases:
            keys = [self._new(f"ring/group/{size}/{count}/{i}", size) for i in range(count)]
            outs = [np.empty(size, np.float32) for _ in keys]
            groups.append(self._node.group(keys, [self._gradient[:size]] * count, outs))
        busy = np.empty((GROUP_REPEATS, len(groups)))
        for repeat in busy:  # in turns, so that other load affects all alike
            for i, group in enumerate(groups):
                self._node.barrier()
                began = time.process_time()
                group.pushpull().wait()
                self._node.barrier()  # other workers need nothing more of this worker now
                repeat[i] = time.process_time() - began
        total = np.zeros(64, np.float32)
        total[: len(groups)] = 1e9 * np.median(busy[1:], axis=0)
        self._node.pushpull(self._talk, total).wait()
        for (size, count), nanoseconds in zip(cases, total):
            self.measure(f"colocated/busy/{size}/{count}/{int(nanoseconds)}", 64)

    def name_place(self) -> None:
        """Name a key after the machines: which workers share a kernel, and its cores.

        Each worker fills its own slot of a sum, from which all workers learn all machines. The
        key's name brings the result into the timeline.
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
