"""One node of a measured kvstore job, in every role, on stock MXNet or on HiPress.

The two differ in the kvstore's name only. A worker times push+pull of the given float arrays, from
a barrier to the last byte pulled, and reports seconds per iteration and its transport's counters.
With ``trainer``, which is the place of the optimizer ("workers" or "kvstore"), it times steps of a
Gluon Trainer with these parameters. kvstore "none" is a Trainer without a kvstore.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

from benchmarks.common.timing import options, report, time_blocks


def processor_seconds() -> float:
    """Return the processor seconds of all processes of this job, its parent's children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == os.getppid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def load_mxnet(kvstore: str):
    """Import mxnet, and mxnet_hipress if the kvstore is HiPress's. Servers do not return."""
    if "hipress" in kvstore:
        import mxnet_hipress  # noqa: F401
    import mxnet

    return mxnet


def main() -> None:
    args = options(
        dtype="float32",
        compression={},
        warmup=3,
        iterations=10,
        seed=0,
        test_results=False,
        trainer="",
        in_a_row=10,
    )
    mx = load_mxnet(args.kvstore)
    import numpy as np

    shapes, compression = [tuple(shape) for shape in args.shapes], args.compression
    if args.trainer:
        return report(**time_trainer(mx, shapes, compression, args))
    kv = mx.kv.create(args.kvstore)
    if compression:
        kv.set_gradient_compression(compression)

    def gradient(rank: int, key: int) -> np.ndarray:
        random = np.random.default_rng([args.seed, rank, key])
        return random.standard_normal(shapes[key], dtype=np.float32).astype(args.dtype)

    keys = list(range(len(shapes)))
    grads = [mx.nd.array(gradient(kv.rank, key), dtype=args.dtype) for key in keys]
    outs = [mx.nd.zeros(shape, dtype=args.dtype) for shape in shapes]
    names = [str(key) for key in keys]
    kv.init(names, outs)
    mx.nd.waitall()
    barrier = kv.barrier if hasattr(kv, "barrier") else kv._barrier
    barrier()

    def step() -> None:
        # As Module and Trainer do: from the last layer, with earlier layers more urgent.
        for key in reversed(keys):
            kv.push(names[key], grads[key], priority=-key)
            kv.pull(names[key], out=outs[key], priority=-key)
        for out in outs:
            out.wait_to_read()

    seconds, wrong = [], 0
    before = None
    for iteration in range(args.warmup + args.iterations):
        if iteration == args.warmup and hasattr(kv, "stats"):
            before = kv.stats()
        barrier()
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        if args.test_results and iteration == 0:
            wrong = count_wrong(outs, gradient, kv.num_workers, compression, np)
    after = kv.stats() if before is not None else {}
    stats = {name: after[name] - before[name] for name in after}
    report(rank=kv.rank, seconds=seconds[args.warmup :], wrong=wrong, stats=stats)
    barrier()


def time_trainer(mx, shapes: list[tuple], compression: dict, args: SimpleNamespace) -> dict:
    """Time steps of a Trainer whose gradients are all ready at once.

    Returns seconds of a step by block, and processor seconds of one step. The latter are those of
    all the job's processes, which worker 0 reads.
    """
    kv = None if args.kvstore == "none" else mx.kv.create(args.kvstore)
    params = mx.gluon.ParameterDict()
    for key, shape in enumerate(shapes):
        params.get(f"p{key}", shape=shape, dtype=args.dtype)
    params.initialize(mx.init.One())
    for param in params.values():
        param.grad()[:] = mx.nd.random.normal(shape=param.shape)
    at = {} if kv is None else {"update_on_kvstore": args.trainer == "kvstore"}
    trainer = mx.gluon.Trainer(
        params, "sgd", {"learning_rate": 0.01}, kvstore=kv, compression_params=compression, **at
    )
    arrays = [param.data() for param in params.values()]

    def barrier() -> None:
        if kv is not None:
            kv._barrier()

    def step() -> None:
        for array in arrays:
            array._fresh_grad = True  # as a backward pass does
        trainer.step(1)
        mx.nd.waitall()

    time_blocks(step, barrier, 1, args.warmup)
    barrier()
    cpu = processor_seconds()
    seconds = time_blocks(step, barrier, args.iterations, args.in_a_row)
    barrier()
    cpu = (processor_seconds() - cpu) / args.iterations / args.in_a_row
    barrier()
    return {"rank": kv.rank if kv else 0, "in_a_row": seconds, "cpu": cpu}


def count_wrong(outs, gradient, num_workers, compression, np) -> int:
    """Return the number of elements of the first pull that cannot be right.

    An uncompressed gradient's sum must be right except for rounding. A compressed one must have at
    most as many different values as its format allows (each partition of a large one has its own),
    and the sum's direction. Unit tests check exact values. Small gradients may be uncompressed in a
    compressed job.
    """
    from hipress.topology.graph import PARTITION_ELEMENTS

    kind = compression.get("type", "none")
    wrong = 0
    for key, out in enumerate(outs):
        found = out.asnumpy().astype(np.float32)
        want = sum(gradient(rank, key).astype(np.float32) for rank in range(num_workers))
        tolerance = 1e-5 if out.dtype == np.float32 else 2e-2
        off = int((~(np.abs(found - want) <= tolerance * (1 + np.abs(want)))).sum())
        if kind != "none" and off:
            # All of a few elements may remain in the residuals.
            along = float((found * want).sum())
            along_enough = along > 0 or (along == 0 and found.size < 64)
            partitions = -(-found.size // PARTITION_ELEMENTS)
            allowed = 2 * num_workers + 1 if kind == "2bit" else partitions * 2 ** (num_workers + 4)
            off = 0 if along_enough and len(np.unique(found)) <= allowed else found.size
        wrong += off
    return wrong


if __name__ == "__main__":
    main()
