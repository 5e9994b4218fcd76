"""Dense keys, float32 and float16: init, sums, broadcast, pushpull, and updates on the servers."""

import mxnet as mx
import numpy as np
from checks import BIG, ODD, SMALL, arguments, constant, job

SHAPES = {"small": SMALL, "odd": ODD, "big": BIG, "one": (1,), "deep": (2, 3, 4, 5)}
DTYPES = ("float32", "float16")
RATE = 2


def keys_of(prefix):
    """Return (key, shape, dtype) for every kind of key."""
    return [
        (f"{prefix} {name} {dtype}", shape, dtype)
        for name, shape in SHAPES.items()
        for dtype in DTYPES
    ]


def try_init(checks):
    """Check that rank 0's value is every worker's, at once, also of keys that come in lists."""
    for number, (key, shape, dtype) in enumerate(keys_of("init")):
        checks.kv.init(key, [constant(shape, number + 100 * checks.rank, dtype)])
        checks.equal(key, checks.pulled(key, shape, dtype), number)
    names = [f"listed {i}" for i in range(20)]
    checks.kv.init(names, [constant(SMALL, i + checks.rank) for i in range(20)])
    outs = [constant(SMALL, 77) for _ in names]
    checks.kv.pull(names, out=outs)
    for i, (name, out) in enumerate(zip(names, outs)):
        checks.equal(name, out, i)


def try_sums(checks):
    """Check that without an optimizer the store is the sum over devices and workers, not
    added to."""
    kv = checks.kv
    for key, shape, dtype in keys_of("sum"):
        kv.init(key, constant(shape, 1, dtype))
        for step in range(3):
            mine = (checks.rank + 1) * (step + 1)
            kv.push(key, constant(shape, mine, dtype), priority=-step)
            expected = checks.rank_sum() * (step + 1)
            checks.equal(f"{key} {step}", checks.pulled(key, shape, dtype), expected)
        devices = [mx.nd.full(shape, checks.rank + 1, mx.cpu(i), dtype) for i in range(2)]
        kv.push(key, devices)
        outs = [mx.nd.full(shape, 77, mx.cpu(i), dtype) for i in range(2)]
        kv.pull(key, out=outs)
        for i, out in enumerate(outs):
            checks.equal(f"{key} device {i}", out, 2 * checks.rank_sum())
    names = [f"listed {i}" for i in range(20)]
    kv.push(names, [constant(SMALL, i * (checks.rank + 1)) for i in range(20)])
    outs = [constant(SMALL, 77) for _ in names]
    kv.pull(names, out=outs)
    for i, (name, out) in enumerate(zip(names, outs)):
        checks.equal(f"{name} sum", out, i * checks.rank_sum())


def try_pushpull(checks, expected_of):
    """Call pushpull over two devices, into other arrays and in place.

    Args:
        expected_of: Function of (sum, step) that returns the expected pull.
    """
    for key, shape, dtype in keys_of("pushpull"):
        for step in range(3):
            values = [mx.nd.full(shape, checks.rank + 1, mx.cpu(i), dtype) for i in range(2)]
            outs = None if step == 2 else [mx.nd.full(shape, 77, mx.cpu(i), dtype) for i in (0, 1)]
            checks.kv.pushpull(key, values, out=outs)
            for i, out in enumerate(values if outs is None else outs):
                name = f"{key} {checks.phase} {step} {i}"
                checks.equal(name, out, expected_of(2 * checks.rank_sum(), step))


def try_broadcast(checks):
    """Call broadcast, which is init and pull in one, into as many arrays as there are."""
    for number, (key, shape, dtype) in enumerate(keys_of("pushpull")):
        outs = [mx.nd.full(shape, 77, mx.cpu(i), dtype) for i in range(2)]
        checks.kv.broadcast(key, constant(shape, number + 50 * checks.rank, dtype), out=outs)
        for i, out in enumerate(outs):
            checks.equal(f"{key} broadcast {i}", out, number)


def try_updates(checks, repeats):
    """Check that the test optimizer adds the rescaled sum to the weight, on the servers."""
    kv = checks.kv
    if checks.multi_precision:  # MXNet then requires keys to be initialized after set_optimizer
        kv.set_optimizer(mx.optimizer.create("test", rescale_grad=RATE, multi_precision=True))
        kv._barrier()
    for key, shape, dtype in keys_of("updated"):
        kv.init(key, constant(shape, 1, dtype))
    if not checks.multi_precision:
        kv.set_optimizer(mx.optimizer.create("test", rescale_grad=RATE))
        kv._barrier()
    for key, shape, dtype in keys_of("updated"):
        for step in range(repeats):
            kv.push(key, constant(shape, checks.rank + 1, dtype))
            expected = checks.rank_sum() * RATE * (step + 1) + 1
            checks.equal(f"{key} {step}", checks.pulled(key, shape, dtype), expected)
    checks.phase = "updates"
    last = 2 * checks.rank_sum()  # of the pushes before there was an optimizer
    try_pushpull(checks, lambda total, step: last + total * RATE * (step + 1))


def try_tiny_steps(checks, dtype):
    """Check that steps that float16 loses count if the servers keep the weights in float32, as
    multi_precision requests. Results without it are kept, and depend on the store."""
    key = f"tiny {dtype}"
    checks.kv.init(key, constant(BIG, 1, dtype))
    for _ in range(16):
        checks.kv.push(key, constant(BIG, 2**-14, dtype))
        checks.pulled(key, BIG, dtype).wait_to_read()
    pulled, expected = checks.pulled(key, BIG, dtype), 1 + 16 * checks.workers * RATE * 2**-14
    assert np.float16(expected) == expected
    if dtype == "float16" and not checks.multi_precision:
        checks.keep("lost in float16", pulled)
    else:
        checks.equal(key, pulled, expected)


def main():
    options = arguments(repeats=4, multi_precision=False)
    with job(options) as checks:
        try_init(checks)
        try_sums(checks)
        try_broadcast(checks)
        checks.phase = "sums"
        try_pushpull(checks, lambda total, step: total)
        checks.multi_precision = options.multi_precision
        try_updates(checks, options.repeats)
        for dtype in DTYPES:
            try_tiny_steps(checks, dtype)


main()
