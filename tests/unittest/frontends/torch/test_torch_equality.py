"""Results on a process group equal the NumPy reference, bit for bit, on all ranks."""

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest

from harness.torch_ranks import run_ranks, torch
from hipress.compression import compiler
from hipress.topology import topologies

SIZES = [40_001, 5]
STEPS = 2
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
TOPOLOGIES = [name for name in topologies.names() if name != topologies.among_workers("ps")]
"""Topologies, each once: "ps" and "colocated" are one here."""
CODECS = {
    "none": {},
    "2bit": {"threshold": 0.3},
    "1bit": {},
    "onebit": {},
    "tbq": {"threshold": 0.3},
    "ternary": {"momentum": 0.9},
    "stc": {},
    "sparseloco": {},
    "dct": {"ratio": 0.05},
    "terngrad": {},
    "maxmin": {},
    "maxminef": {},
    "topk": {"ratio": 0.01},
    "randomk": {"ratio": 0.01},
    "graddrop": {"drop": 0.99},
    "dgc": {"ratio": 0.01, "warmup": 2},
    "natural": {},
    "fp16": {},
    "bf16": {},
    "lossless": {},
}


def gradient(rank, step, n, dtype):
    values = np.random.default_rng([rank, step, n]).standard_normal(n).astype(np.float32)
    return torch.from_numpy(values).to(dtype)


class Averaging:
    """Compressor that encodes the mean where the input is a sum of ``num_summands``."""

    def __init__(self, compressor, num_summands):
        self._compressor, self._scale = compressor, np.float32(1 / num_summands)
        self.config = compressor.config
        self.decode, self.decode_sum = compressor.decode, compressor.decode_sum

    def encode(self, gradient):
        return self._compressor.encode(gradient * self._scale)


def reference(graph, codecs, world_size, name):
    from graph_reference import Reference
    from hipress.topology.origins import results
    from hipress.torch.state.error_feedback import random_stream

    final = results(graph)
    tasks = {id(task): (node, t) for node, ts in graph.tasks.items() for t, task in enumerate(ts)}

    def codec(node, task):
        is_result, index = tasks[id(task)] in final, tasks[id(task)][1]
        kind = codecs.kind(task, is_result)
        if kind == "plain":
            return None
        compressor = codecs.make(kind)
        compressor.stream = random_stream(name, index, node.rank)
        return Averaging(compressor, world_size) if is_result and kind != "own" else compressor

    return Reference(graph, codec)


def cases(world_size):
    """Return all cases for the hook's two main topologies; the other topologies take dtypes in
    turns, to save time."""
    for number, (topology, type) in enumerate(itertools.product(TOPOLOGIES, CODECS)):
        for dtype in DTYPES:
            turn = (number + world_size) % len(DTYPES)
            if topology in ("ps", "ring") or DTYPES[turn] == dtype:
                yield topology, type, dtype


def run_all(rank):
    """Run every case on subgroups of 1 to all ranks.

    Returns {case: SHA-1 of the results}, and the same of the reference for a share of the cases.
    """
    import torch.distributed as dist

    from hipress.torch.executors.engine import engine_of
    from hipress.torch.settings import Settings

    found, wanted = {}, {}
    for world_size in range(1, dist.get_world_size() + 1):
        group = dist.new_group(list(range(world_size)))
        if rank >= world_size:
            continue
        engine = engine_of(group, timeout=20)
        for number, (topology, type, dtype) in enumerate(cases(world_size)):
            settings = Settings(type, CODECS[type], topology=topology, devices_per_host=2)
            graphs = [settings.graph(n, world_size, owner) for owner, n in enumerate(SIZES)]
            case = (world_size, topology, type, str(dtype))
            found[case] = on_group(engine, rank, graphs, type, dtype)
            if number % world_size == rank:
                wanted[case] = in_numpy(world_size, graphs, type, dtype)
    return found, wanted


def on_group(engine, rank, graphs, type, dtype, sizes=SIZES):
    from hipress.torch.executors.host import HostBucket, add_key
    from hipress.torch.gradient import Gradient
    from hipress.torch.state.error_feedback import Codecs, ErrorFeedback

    gradients = [Gradient(str(g), sum(sizes[:g]), n) for g, n in enumerate(sizes)]
    states = ErrorFeedback(Codecs(type, CODECS[type]), rank, engine.world_size)
    keys = [
        (add_key(engine, of, graph, dtype, states, type), of.offset)
        for of, graph in zip(gradients, graphs, strict=True)
    ]
    bucket = HostBucket(engine, dtype, gradients, keys)
    sha = hashlib.sha1()
    for step in range(STEPS):
        flat = torch.cat([gradient(rank, step, n, dtype) for n in sizes])
        run(bucket, flat)
        sha.update(flat.view(torch.uint8).numpy())
    if rank == engine.world_size - 1:  # an error of a rank's bucket is reported to all
        flat[-1] = float("nan")
    run(bucket, flat)
    assert bool(torch.isnan(flat).all())
    return sha.hexdigest()


def run(bucket, flat):
    future = torch.futures.Future()
    bucket.run(flat, future.set_result)
    assert future.wait() is None


def in_numpy(world_size, graphs, type, dtype, sizes=SIZES):
    from hipress.topology.graph import worker
    from hipress.torch.state.error_feedback import Codecs

    runs = [
        reference(graph, Codecs(type, CODECS[type]), world_size, str(g))
        for g, graph in enumerate(graphs)
    ]
    sha = hashlib.sha1()
    for step in range(STEPS):
        for run, n in zip(runs, sizes, strict=True):
            result = run.step(
                {worker(r): gradient(r, step, n, dtype).float().numpy() for r in range(world_size)}
            )[worker(0)]
            sha.update(torch.from_numpy(result).to(dtype).view(torch.uint8).numpy())
    return sha.hexdigest()


@pytest.mark.slow
def test_every_codec_topology_dtype_and_world_size_equals_the_reference():
    """Every codec gives the NumPy reference's bits, in every topology, dtype and world size.

    Cost: The full matrix runs in one job, whose processes are started once; encoding in NumPy
    takes the time.
    """
    ranks = run_ranks(run_all, 8, timeout=170)
    assert all(isinstance(found, tuple) for found in ranks), ranks
    everything = ranks[0][0]
    assert len(everything) == 8 * len(CODECS) * (2 * len(DTYPES) + len(TOPOLOGIES) - 2)
    for found, _ in ranks:
        assert all(everything[case] == sha for case, sha in found.items()), "ranks differ"
    wanted = {case: sha for _, share in ranks for case, sha in share.items()}
    assert wanted == everything
    for (world_size, topology, type, dtype), sha in everything.items():
        if type == "lossless":  # the very bits of uncompressed sums, where both are there
            assert everything.get((world_size, topology, "none", dtype), sha) == sha


CUT = [30_001, 20_000, 7]


def run_cut(rank):
    """Run, as :func:`run_all`, gradients of many partitions, without subgroups; dtypes in turns."""
    import torch.distributed as dist

    from hipress.torch.executors.engine import engine_of

    world_size = dist.get_world_size()
    engine = engine_of(dist.group.WORLD, timeout=20)
    found, wanted = {}, {}
    for number, topology in enumerate(TOPOLOGIES):
        graphs = [
            topologies.build(
                topologies.among_workers(topology),
                n,
                world_size,
                home=owner,
                devices_per_host=2,
                partitions=min(12, n // 64 + 1),
            )
            for owner, n in enumerate(CUT)
        ]
        args = graphs, "maxminef", DTYPES[number % len(DTYPES)], CUT
        found[topology] = on_group(engine, rank, *args)
        if number % world_size == rank:
            wanted[topology] = in_numpy(world_size, *args)
    return found, wanted


@pytest.mark.slow
def test_gradients_in_many_partitions_too():
    ranks = run_ranks(run_cut, 4)
    assert all(isinstance(found, tuple) for found in ranks), ranks
    wanted = {topology: sha for _, share in ranks for topology, sha in share.items()}
    assert set(wanted) == set(TOPOLOGIES)
    for found, _ in ranks:
        assert found == wanted


def test_the_list_of_codecs_is_complete():
    # Not hipress.codecs(): other tests load additional algorithms.
    specs = Path(compiler.__file__).parent / "specs"
    assert set(CODECS) == {"none"} | {path.stem for path in specs.glob("*.cll")}
