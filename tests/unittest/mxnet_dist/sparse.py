"""row_sparse keys: pushes of few, all and no rows, pulls of any rows, whole and partitioned
keys."""

import mxnet as mx
import numpy as np
from checks import arguments, job

SHAPES = {"small": (2, 3), "odd": (31, 7), "big": (120, 40)}
RATE = 2


def pull_rows(checks, key, shape, dtype, rows):
    """Return the rows of a key, as a row_sparse array."""
    out = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype)
    checks.kv.row_sparse_pull(key, out=out, row_ids=rows)
    return out


def only(value, rows):
    """Return `value` with zeros in all other rows."""
    kept = np.zeros_like(value)
    wanted = np.unique(np.asarray(rows, np.int64))
    kept[wanted] = value[wanted]
    return kept


def gradient_of(rank, shape, step, dtype):
    """Return what a worker pushes: rank + 1 in certain rows, some of which other workers also
    push."""
    gradient = np.zeros(shape, dtype)
    rows = np.random.RandomState(3 * step).permutation(shape[0])[rank :: rank + 2]
    gradient[rows] = rank + 1
    return gradient


def try_init(checks, dtype):
    for name, shape in SHAPES.items():
        checks.kv.init(name, mx.nd.ones(shape, dtype=dtype).tostype("row_sparse"))
        checks.kv.init(f"{name} zeros", mx.nd.ones(shape, dtype=dtype).tostype("row_sparse"))


def try_pushes(checks, dtype, repeats):
    """Push different rows on each worker; pull rows at random, with duplicates."""
    for name, shape in SHAPES.items():
        weight = np.ones(shape, dtype)
        for step in range(repeats):
            gradients = [gradient_of(r, shape, step, dtype) for r in range(checks.workers)]
            weight = weight + RATE * sum(gradients)
            mine = mx.nd.array(gradients[checks.rank], dtype=dtype).tostype("row_sparse")
            checks.kv.push(name, mine)
            rows = np.random.RandomState(checks.rank).randint(shape[0], size=shape[0])
            pulled = pull_rows(checks, name, shape, dtype, mx.nd.array(rows, dtype="int64"))
            checks.equal(f"{name} {step}", pulled, only(weight, rows))
            checks.equal(f"{name} {step} rows", pulled.indices, np.unique(rows))
        checks.weights[name] = weight


def try_row_ids(checks, dtype):
    """Pull all rows, one, the same repeatedly, in no order, in a table, as floats, none."""
    for name, shape in SHAPES.items():
        weight, last = checks.weights[name], shape[0] - 1
        for title, rows in {
            "all": np.arange(shape[0]),
            "one": [last],
            "often": [1, 1, 1, 1],
            "unordered": [1, 0, last],
        }.items():
            for kind in ("int64", "float32"):
                ids = mx.nd.array(rows, dtype=kind)
                pulled = pull_rows(checks, name, shape, dtype, ids)
                checks.equal(f"{name} {title} {kind}", pulled, only(weight, rows))
        table = mx.nd.array([[0, 1], [last, 0]])
        pulled = pull_rows(checks, name, shape, dtype, table)
        checks.equal(f"{name} table", pulled, only(weight, [0, 1, last]))
        none = pull_rows(checks, name, shape, dtype, mx.nd.array([]))
        checks.equal(f"{name} none", none, 0)
        again = pull_rows(checks, name, shape, dtype, table)
        checks.equal(f"{name} table again", again, only(weight, [0, 1, last]))


def try_outs(checks, dtype):
    """Pull the same rows into several arrays; several keys in one call, each with separate rows."""
    shape = SHAPES["odd"]
    outs = [mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype) for _ in range(3)]
    checks.kv.row_sparse_pull("odd", out=outs, row_ids=mx.nd.array([5, 2]))
    for i, out in enumerate(outs):
        checks.equal(f"several {i}", out, only(checks.weights["odd"], [2, 5]))
    names = list(SHAPES)
    outs = [mx.nd.sparse.zeros("row_sparse", SHAPES[n], dtype=dtype) for n in names]
    rows = [mx.nd.array([i % 2]) for i in range(len(names))]
    checks.kv.row_sparse_pull(names, out=outs, row_ids=rows)
    for i, (name, out) in enumerate(zip(names, outs)):
        checks.equal(f"many {name}", out, only(checks.weights[name], [i % 2]))


def try_zeros(checks, dtype, repeats):
    """Check that pushes without a row change nothing, on some workers or all."""
    for name, shape in SHAPES.items():
        key, weight = f"{name} zeros", np.ones(shape, dtype)
        rows = mx.nd.arange(shape[0])
        for step in range(repeats):
            checks.kv.push(key, mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype))
            pulled = pull_rows(checks, key, shape, "float32", rows)  # for any dtype of the key
            checks.equal(f"{key} {step}", pulled, weight)
        for step in range(checks.workers):  # one worker pushes rows, the other workers none
            gradient = np.zeros(shape, dtype)
            if checks.rank == step:
                gradient[1] = 3
            checks.kv.push(key, mx.nd.array(gradient, dtype=dtype).tostype("row_sparse"))
            weight[1] += 3 * RATE
            pulled = pull_rows(checks, key, shape, dtype, rows)
            checks.equal(f"{key} by {step}", pulled, weight)


def try_devices(checks, dtype):
    """Push gradients of several devices, with separate rows and common ones."""
    for name, shape in SHAPES.items():
        weight = checks.weights[name]
        parts = [np.zeros(shape, dtype) for _ in range(2)]
        for i, part in enumerate(parts):
            part[: i + 1] = 1
        checks.kv.push(
            name,
            [
                mx.nd.array(part, ctx=mx.cpu(i), dtype=dtype).tostype("row_sparse")
                for i, part in enumerate(parts)
            ],
        )
        weight = weight + RATE * checks.workers * sum(parts)
        pulled = pull_rows(checks, name, shape, dtype, mx.nd.arange(shape[0]))
        checks.equal(f"{name} devices", pulled, weight)


def optimizer_of(options):
    """Return two optimizers that add RATE times the sum to the weight. MXNet's "test" raises an
    error after it has done so to a row_sparse weight, which MXNet's servers print and ignore."""
    if options.optimizer == "test":
        return mx.optimizer.create(
            "test", rescale_grad=RATE, multi_precision=options.multi_precision
        )
    return mx.optimizer.SGD(learning_rate=-RATE, multi_precision=options.multi_precision)


def main():
    options = arguments(
        repeats=4, dtype="float32", optimizer="test", multi_precision=False, late=False
    )
    optimizer = optimizer_of(options)
    with job(options) as checks:
        checks.weights = {}
        if not options.late:
            checks.kv.set_optimizer(optimizer)
            checks.kv._barrier()
        try_init(checks, options.dtype)
        if options.late:
            checks.kv.set_optimizer(optimizer)
            checks.kv._barrier()
        try_pushes(checks, options.dtype, options.repeats)
        try_row_ids(checks, options.dtype)
        try_outs(checks, options.dtype)
        try_zeros(checks, options.dtype, options.repeats)
        try_devices(checks, options.dtype)


main()
