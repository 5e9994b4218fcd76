"""Node of this worker, and random gradients that every worker can compute."""

import numpy as np

from hipress.runtime.node import Node

node = Node()
rank, workers = node.rank, node.num_workers


def gradient(n, iteration, worker, seed=0):
    return np.random.default_rng([seed, iteration, worker]).standard_normal(n).astype(np.float32)


def gradients(n, iteration, seed=0):
    return [gradient(n, iteration, w, seed) for w in range(workers)]


def in_rank_order(arrays):
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def leave():
    """Leave the job when all operations have ended; other workers may still train."""
    node.wait_all()
    node.stop()


def finish():
    """Leave the job together with all workers."""
    node.barrier()
    node.stop()
    print("finished")
