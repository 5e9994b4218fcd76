"""Tests of dist_async: each push is applied as it comes, and by the time its worker pulls."""

import mxnet as mx
from checks import BIG, ODD, SMALL, arguments, constant, job

SHAPES = {"small": SMALL, "odd": ODD, "big": BIG}
RATE = 2


def try_own_pushes(checks):
    """Push on rank 0 alone, while other ranks wait: nothing waits for their pushes."""
    for name, shape in SHAPES.items():
        checks.kv._barrier()
        if checks.rank == 0:
            for step in range(4):
                checks.kv.push(name, constant(shape, 3))
                pulled = checks.pulled(name, shape)
                checks.equal(f"{name} {step}", pulled, 1 + 3 * RATE * (step + 1))
        checks.kv._barrier()
        checks.equal(f"{name} of rank 0", checks.pulled(name, shape), 1 + 12 * RATE)


def try_everybodys_pushes(checks):
    """Push different numbers of times on each worker; when all have ended, all pushes have
    counted."""
    for name, shape in SHAPES.items():
        key = f"{name} all"
        checks.kv.init(key, constant(shape, 1))
        for _ in range(checks.rank + 2):
            checks.kv.push(key, constant(shape, checks.rank + 1))
            mx.nd.waitall()  # all that MXNet's user can wait for, without a pull
        checks.kv._barrier()
        total = sum((rank + 1) * (rank + 2) for rank in range(checks.workers))
        checks.equal(key, checks.pulled(key, shape), 1 + RATE * total)


def try_pushpull(checks):
    """Push and pull by turns: each worker's pushpull returns the previous value plus its own."""
    for name, shape in SHAPES.items():
        key = f"{name} turns"
        checks.kv.init(key, constant(shape, 0))
        for turn in range(checks.workers):
            if turn == checks.rank:
                values = [mx.nd.ones(shape, ctx=mx.cpu(i)) for i in range(2)]
                checks.kv.pushpull(key, values)
                for i, value in enumerate(values):
                    checks.equal(f"{key} mine {i}", value, 2 * RATE * (turn + 1))
            checks.kv._barrier()
        checks.equal(key, checks.pulled(key, shape), 2 * RATE * checks.workers)


def try_rows(checks):
    """Check that row_sparse pushes also count at once."""
    for name, shape in {"rows": (4, 3), "many rows": (120, 40)}.items():
        checks.kv.init(name, mx.nd.ones(shape).tostype("row_sparse"))
        for turn in range(checks.workers):
            if turn == checks.rank:
                gradient = mx.nd.sparse.row_sparse_array(
                    (mx.nd.ones((1, shape[1])), [1]), shape=shape
                )
                checks.kv.push(name, gradient)
                out = mx.nd.sparse.zeros("row_sparse", shape)
                checks.kv.row_sparse_pull(name, out=out, row_ids=mx.nd.array([1]))
                checks.equal(f"{name} {turn}", out.data, 1 + RATE * (turn + 1))
            checks.kv._barrier()


def try_trainer(checks):
    """Check that a Trainer leaves updates to the servers, or refuses."""
    for number, (stype, asked) in enumerate(
        (stype, asked) for stype in ("default", "row_sparse") for asked in (None, True, False)
    ):
        param = mx.gluon.Parameter(f"p{number}", shape=(10, 1), stype=stype)
        param.initialize(ctx=[mx.cpu(0), mx.cpu(1)], init="zeros")
        trainer = mx.gluon.Trainer(
            [param], "sgd", {"learning_rate": 0.1}, kvstore=checks.kv, update_on_kvstore=asked
        )
        if asked is False:
            checks.refused(f"{stype} {number}", ValueError, trainer._init_kvstore)
        else:
            trainer._init_kvstore()
            assert trainer._kv_initialized and trainer._update_on_kvstore is True


def main():
    options = arguments(compressed=False)
    with job(options) as checks:
        if options.compressed:
            checks.kv.set_gradient_compression({"type": "2bit", "threshold": 3})
        checks.kv.set_optimizer(mx.optimizer.create("test", rescale_grad=RATE))
        for name, shape in SHAPES.items():
            checks.kv.init(name, constant(shape, 1))
        try_own_pushes(checks)
        if not options.compressed:
            try_everybodys_pushes(checks)
            try_pushpull(checks)
            try_rows(checks)
        try_trainer(checks)


main()
