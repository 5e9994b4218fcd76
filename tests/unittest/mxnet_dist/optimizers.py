"""Optimizers on the servers: their states, their settings, float16, and a replacement during
training."""

import mxnet as mx
import numpy as np
from checks import BIG, SMALL, arguments, constant, job

SHAPES = {"small": SMALL, "big": BIG, "one": (1,)}
OPTIMIZERS = {
    "sgd": lambda options: mx.optimizer.SGD(learning_rate=0.1, **options),
    "momentum": lambda options: mx.optimizer.SGD(
        learning_rate=0.1, momentum=0.9, wd=0.01, rescale_grad=0.5, **options
    ),
    "clipped": lambda options: mx.optimizer.NAG(
        learning_rate=0.05, momentum=0.9, clip_gradient=1.5, **options
    ),
    "adam": lambda options: mx.optimizer.Adam(
        learning_rate=0.01,
        lr_scheduler=mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.01),
        **options,
    ),
    "adagrad": lambda options: mx.optimizer.AdaGrad(learning_rate=0.1, **options),
}


def start(name, shape, dtype):
    """Return a key's first value."""
    return mx.nd.array(np.random.RandomState(len(name)).uniform(-1, 1, shape), dtype=dtype)


def train(checks, title, keys, dtype, numbers):
    """Push quarters a few times; their sums are the same in any order."""
    for step in range(4):
        for key, shape in keys.items():
            values = np.round(numbers.uniform(-2, 2, shape) * 4) / 4
            checks.kv.push(key, mx.nd.array(values, dtype=dtype))
            checks.keep(f"{title} {key} {step}", checks.pulled(key, shape, dtype))


def against_numpy(checks):
    """Compare plain SGD with its formula: weight - rate * (sum + wd * weight)."""
    checks.kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, wd=0.25))
    checks.kv._barrier()
    for name, shape in SHAPES.items():
        key, weight = f"plain {name}", np.float32(2)
        checks.kv.init(key, constant(shape, 2))
        for step in range(3):
            checks.kv.push(key, constant(shape, checks.rank + 1))
            weight -= np.float32(0.5) * (checks.rank_sum() + np.float32(0.25) * weight)
            checks.equal(f"{key} {step}", checks.pulled(key, shape), weight)


def main():
    options = arguments(dtype="float32", multi_precision=False)
    more = {"multi_precision": True} if options.multi_precision else {}
    with job(options) as checks:
        numbers = np.random.RandomState(10 + checks.rank)
        if options.dtype == "float32":
            against_numpy(checks)
        # Each of these replaces the one before, whose states end with it, with separate keys and
        # with keys that have been trained by all before it.
        old = {}
        for title, create in OPTIMIZERS.items():
            checks.kv._barrier()
            checks.kv.set_optimizer(create(more))
            checks.kv._barrier()
            new = {f"{title} {name}": shape for name, shape in SHAPES.items()}
            for key, shape in new.items():
                checks.kv.init(key, start(key, shape, options.dtype))
            train(checks, title, {**old, **new}, options.dtype, numbers)
            old = {f"{title} small": SMALL}


main()
