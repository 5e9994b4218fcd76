"""One node of a measured kvstore job: runs in every role, on stock MXNet or on ours.

The two differ in the kvstore's name only. A worker times push+pull of the given float arrays, from
barrier to the last byte pulled, and reports seconds per iteration and its transport's counters. Or,
with ``trainer``, which says where the optimizer runs ("workers" or "kvstore"), steps of a Gluon
Trainer that has these parameters; kvstore "none": without one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

from benchmarks.common.timing import options, report, time_blocks


def processor_seconds() -> float:
    """What all processes of this job have computed so far: all children of this one's parent."""
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
    """Import mxnet, and ours beside it if the kvstore is ours; servers do not return from it."""
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
        # As Module and Trainer do it: layer by layer from the last, earlier layers more urgent.
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
    """Steps of a Trainer, gradients there at once: seconds of a step by blocks, CPU seconds of one.

    The CPU is that of the job's processes together; worker 0 asks for it.
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
    """Return the elements of the first pull that cannot be right.

    An uncompressed gradient's sum must be right to rounding. A compressed one must hold no more
    different values than its format can say (each partition of a large one has its own), and point
    the way the sum does; the exact values are the unit tests' business. Small gradients may go
    uncompressed in a compressed job.
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
            # A few elements alone may all stay in the residuals.
            along = float((found * want).sum())
            along_enough = along > 0 or (along == 0 and found.size < 64)
            partitions = -(-found.size // PARTITION_ELEMENTS)
            allowed = 2 * num_workers + 1 if kind == "2bit" else partitions * 2 ** (num_workers + 4)
            off = 0 if along_enough and len(np.unique(found)) <= allowed else found.size
        wrong += off
    return wrong


if __name__ == "__main__":
    main()
