"""Tests of 2bit compression: residuals by MXNet's formula, for keys of every size."""

import mxnet as mx
import numpy as np
from checks import BIG, ODD, SMALL, arguments, constant, job, two_bit

SHAPES = {"small": SMALL, "one": (1, 1), "odd": ODD, "big": BIG}
RATE = 2


def try_pull_before_push(checks):
    """Check that initial values are not compressed."""
    for name, shape in SHAPES.items():
        checks.equal(f"{name} at first", checks.pulled(name, shape), 0)
        checks.equal(f"{name} one at first", checks.pulled(f"{name} one", shape), 1)


def try_zeros(checks):
    """Check that zeros pushed change nothing."""
    for name, shape in SHAPES.items():
        checks.kv.push(name, mx.nd.zeros(shape))
        checks.equal(f"{name} zeros", checks.pulled(name, shape), 0)


def try_residuals(checks, threshold):
    """Check residuals: what is below the threshold stays with the worker, and counts in the next
    push."""
    step = threshold * checks.rate * checks.workers
    for name, shape in SHAPES.items():
        weight = 0
        for number, (part, steps) in enumerate([(0.4, 0), (0.6, 1), (0.2, 0), (0.8, 1), (1, 1)]):
            checks.kv.push(name, constant(shape, part * threshold))
            weight = weight + steps * step if checks.adds else steps * step
            checks.equal(f"{name} residual {number}", checks.pulled(name, shape), weight)
        checks.kv.push(name, constant(shape, -threshold))
        weight = weight - step if checks.adds else -step
        checks.equal(f"{name} residual down", checks.pulled(name, shape), weight)


def try_random(checks, threshold, repeats):
    """Push random values, different ones on each worker; all workers' parts are computed
    here, too."""
    for name, shape in SHAPES.items():
        key = f"{name} random"
        checks.kv.init(key, mx.nd.zeros(shape))
        numbers = [np.random.RandomState(7 + rank) for rank in range(checks.workers)]
        residuals = [np.zeros(shape, np.float32) for _ in numbers]
        weight = np.zeros(shape, np.float32)
        for step in range(repeats):
            total = np.zeros(shape, np.float32)
            for rank, random in enumerate(numbers):
                gradient = random.uniform(-2 * threshold, 2 * threshold, shape).astype(np.float32)
                if rank == checks.rank:
                    mine = mx.nd.array(gradient)
                sent, residuals[rank] = two_bit(gradient, residuals[rank], threshold)
                total += sent
            checks.kv.push(key, mine)
            weight = weight + checks.rate * total if checks.adds else total
            checks.equal(f"{key} {step}", checks.pulled(key, shape), weight)


def try_devices(checks, threshold):
    """Check that devices are summed before they are compressed."""
    for name, shape in SHAPES.items():
        checks.kv.init(f"{name} devices", mx.nd.zeros(shape))
        for step, expected in enumerate([0, threshold * checks.rate * checks.workers]):
            parts = [mx.nd.full(shape, 0.3 * threshold, mx.cpu(i)) for i in range(2)]
            checks.kv.push(f"{name} devices", parts)
            pulled = checks.pulled(f"{name} devices", shape)
            checks.equal(f"{name} devices {step}", pulled, expected)


def main():
    options = arguments(repeats=6, multi_precision=False, threshold=0.5, optimizer=False)
    with job(options) as checks:
        checks.adds, checks.rate = options.optimizer, RATE if options.optimizer else 1
        params = {"type": "2bit", "threshold": options.threshold}
        checks.kv.set_gradient_compression(params)
        for name, shape in SHAPES.items():
            checks.kv.init(name, mx.nd.zeros(shape))
            checks.kv.init(f"{name} one", mx.nd.ones(shape))
        if options.optimizer:
            checks.kv.set_optimizer(
                mx.optimizer.create(
                    "test", rescale_grad=RATE, multi_precision=options.multi_precision
                )
            )
            checks.kv._barrier()
        try_pull_before_push(checks)
        try_zeros(checks)
        try_residuals(checks, options.threshold)
        try_random(checks, options.threshold, options.repeats)
        try_devices(checks, options.threshold)


main()
