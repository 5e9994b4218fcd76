"""Properties and refusals of a store, and local stores in the same process."""

import mxnet as mx
import numpy as np
from checks import SMALL, arguments, constant, job


def try_identity(checks):
    """Check the name, the size, and that the ranks are 0 to n - 1."""
    kv = checks.kv
    checks.keep("type", kv.type)
    checks.keep("num_workers", kv.num_workers)
    checks.keep("rank", kv.rank)
    checks.keep("capable", float(kv.is_capable("optimizer")))
    checks.refused("capability", ValueError, kv.is_capable, "magic")
    kv.init("ranks", mx.nd.zeros((kv.num_workers,)))
    mine = np.zeros(kv.num_workers)
    mine[kv.rank] = kv.rank + 1
    kv.push("ranks", mx.nd.array(mine))
    mx.nd.waitall()
    kv._barrier()
    expected = np.arange(kv.num_workers) + 1
    checks.equal("ranks", checks.pulled("ranks", (kv.num_workers,)), expected)
    for name in ("barrier", "_barrier"):
        if name == "_barrier" or hasattr(kv, name):
            getattr(kv, name)()
    kv._send_command_to_servers(77, "which no server knows")


def try_refusals(checks):
    """Check refusals of keys that are missing, exist, or are of another type, and of sparse
    pulls."""
    kv, error = checks.kv, (mx.MXNetError, AssertionError)
    kv.init("dense", constant(SMALL, 1))
    kv.init("rows", mx.nd.ones(SMALL).tostype("row_sparse"))
    out, rows = constant(SMALL, 0), mx.nd.ones(SMALL).tostype("row_sparse")
    checks.refused("unknown pull", error, kv.pull, "unknown", out=out)
    checks.refused("unknown push", error, kv.push, "unknown", out)
    checks.refused("twice", error, kv.init, "dense", out)
    checks.refused("int key", error, kv.init, 999, out)
    checks.refused("int pull", error, kv.pull, 999, out=out)
    checks.refused("mixed", error, kv.push, ["dense", 999], [out, out])
    checks.refused("whole rows", error, kv.pull, "rows", out=rows, ignore_sparse=False)
    checks.refused("unknown rows", error, kv.pull, "unknown", out=rows, ignore_sparse=False)
    errors = (*error, TypeError, ValueError)
    checks.refused("no out", errors, kv.pull, "dense")
    checks.refused("no rows", errors, kv.row_sparse_pull, "rows", out=rows)
    checks.refused("not arrays", errors, kv.push, "dense", 5)
    checks.refused("compression", error, kv.set_gradient_compression, {"type": "3bit"})
    checks.refused(
        "threshold", error, kv.set_gradient_compression, {"type": "2bit", "threshold": 0}
    )
    kv.push("dense", constant(SMALL, checks.rank + 1))  # all is as before
    mx.nd.waitall()
    kv._barrier()
    expected = checks.rank_sum() + ("async" in kv.type)  # where it is added to the weight
    checks.equal("dense", checks.pulled("dense", SMALL), expected)


def try_local(checks):
    """Check that local stores next to it are local, and accept an updater."""
    for name in ("local", "device"):
        kv = mx.kv.create(name)
        assert (kv.type, kv.rank, kv.num_workers) == (name, 0, 1)
        kv.init("key", constant(SMALL, 1))

        def update(_key, gradient, weight):
            weight += 2 * gradient

        kv._set_updater(update)
        for _ in range(2):
            kv.push("key", [mx.nd.full(SMALL, checks.rank + 1, mx.cpu(i)) for i in range(2)])
        pulled = checks.pulled("key", SMALL, stores=kv)
        checks.equal(f"{name} updated", pulled, 1 + 8 * (checks.rank + 1))
        checks.refused(f"{name} compression", Exception, refuse_compression, kv)


def refuse_compression(kv):
    """Check refusals: only "device" compresses on local stores, and only methods that MXNet
    knows."""
    kv.set_gradient_compression({"type": "3bit"})


def main():
    options = arguments()
    with job(options) as checks:
        if "async" in options.store:
            checks.kv.set_optimizer(mx.optimizer.create("test"))
        try_identity(checks)
        try_refusals(checks)
        try_local(checks)


main()
