"""Jobs without servers: real processes on loopback against the NumPy reference, bit for bit."""

from __future__ import annotations

import pytest
from cluster import run_cluster, worker_outputs

HEAD = """
import sys
import numpy as np
from hipress.node import HipressError, Node

node = Node()
rank, workers = node.rank, node.num_workers

def gradient(n, iteration, worker, seed=0):
    return np.random.default_rng([seed, iteration, worker]).standard_normal(n).astype(np.float32)

def gradients(n, iteration, seed=0):
    return [gradient(n, iteration, w, seed) for w in range(workers)]
"""
TAIL = """
node.wait_all()
node.stop()
"""


def run(body: str, workers: int, topology: str, env: dict | None = None, **options) -> list[str]:
    env = {"HIPRESS_TOPOLOGY": topology, "HIPRESS_DEVICES_PER_HOST": "2", **(env or {})}
    script = HEAD + body + TAIL
    results = run_cluster(script, workers=workers, servers=0, env=env, timeout=90, **options)
    return worker_outputs(results)


EQUALS_THE_REFERENCE = """
from hipress.casync.graph import worker
from hipress.casync.reference import Reference, compression

n = 9_000
sizes = {0: n, 1: 700}
for type, params in (
    ("none", {}), ("2bit", {"threshold": 0.75}), ("1bit", {}), ("onebit", {}), ("topk", {}),
    ("tbq", {}),
):
    keys = {}
    for size in sizes.values():
        key = len(node_keys)
        node_keys.append(key)
        keys[key] = node.init_array(key, np.full(size, rank, np.float32))
    node.set_gradient_compression({"type": type, **params, "min_size": 0})
    references = {key: Reference(graph, compression(type, **params)) for key, graph in keys.items()}
    for iteration in range(4):
        given = {key: gradients(graph.n, iteration, key) for key, graph in keys.items()}
        outs = {key: np.zeros(graph.n, np.float32) for key, graph in keys.items()}
        waits = [node.pushpull(key, given[key][rank], outs[key]) for key in keys]
        for wait in waits:
            wait.wait(30)
        for key, reference in references.items():
            expected = reference.step({worker(r): g for r, g in enumerate(given[key])})
            np.testing.assert_array_equal(outs[key], expected[worker(rank)], err_msg=type)
"""


@pytest.mark.parametrize(
    ("topology", "workers"),
    [
        ("ring", 4),
        ("ring", 8),
        ("colocated", 4),
        ("colocated", 8),
        ("tree", 5),
        ("butterfly", 6),
        ("star", 3),
        ("hierarchical", 5),
    ],
)
def test_results_equal_the_numpy_reference_bit_for_bit(topology, workers):
    run(
        "node_keys = []\n" + EQUALS_THE_REFERENCE,
        workers,
        topology,
        env={"HIPRESS_PARTITION_ELEMENTS": "640", "HIPRESS_NUM_THREADS": "2"},
    )
