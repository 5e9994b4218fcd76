"""Many keys of MXNet's store, called in any order: a key that waits for others is never lost."""

from __future__ import annotations

import pytest

from harness.cluster import run_cluster, worker_outputs

pytest.importorskip("mxnet")


def program():
    import random

    import mxnet as mx
    import numpy as np

    import mxnet_hipress  # noqa: F401

    kv = mx.kv.create("dist_sync_hipress")
    count = 24
    for key in range(count):
        kv.init(key, mx.nd.zeros((key + 1, 3)))
    gradients = [mx.nd.zeros((key + 1, 3)) for key in range(count)]
    outs = [mx.nd.zeros((key + 1, 3)) for key in range(count)]
    # What follows a key's call is learned in one step and wrong in the next: other keys, another
    # order, other calls, waits in between. All workers draw the same.
    draw = random.Random(7)

    def check(key, found, step):
        assert np.array_equal(found.asnumpy(), np.full((key + 1, 3), 3 * step + 2 * key)), key

    for step in range(1, 60):
        keys = draw.sample(range(count), draw.randint(1, count))
        for key in keys:
            gradients[key][:] = step * (kv.rank + 1) + key
        late = []
        for key in keys:
            how = draw.randrange(4)
            if how == 0:
                kv.pushpull(key, gradients[key], priority=-key)
                late.append((key, gradients[key]))
            elif how == 1:
                kv.pushpull(key, [gradients[key]], out=[outs[key]], priority=-key)
                late.append((key, outs[key]))
            elif how == 2:
                kv.push(key, gradients[key], priority=-key)
                late.append((key, None))
            else:
                kv.push(key, [gradients[key]])
                kv.pull(key, outs[key])
                check(key, outs[key], step)  # nothing follows now
        for key, found in reversed(late):
            if found is None:
                found = outs[key]
                kv.pull(key, out=found)
            if draw.randrange(2):
                check(key, found, step)
        for key, found in late:
            check(key, found if found is not None else outs[key], step)
    # A list of keys is one call.
    for gradient in gradients:
        gradient[:] = 1
    kv.pushpull(list(range(count)), gradients, out=outs)
    assert all((out.asnumpy() == 2).all() for out in outs)
    # A key whose gradient is followed by others, in a call that nothing follows but the end.
    kv.push(0, gradients[0])
    print("all keys right")


@pytest.mark.slow
@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_calls_in_any_order(servers, engine):
    outputs = worker_outputs(
        run_cluster(program, servers=servers, timeout=180, env={"MXNET_ENGINE_TYPE": engine})
    )
    assert all("all keys right" in output for output in outputs), outputs


def test_arrays_of_another_kind_are_converted_or_refused():
    def program():
        import mxnet as mx
        import numpy as np

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        kv.init("w", mx.nd.zeros((4, 2)))
        flat = mx.nd.ones(8)  # another shape of the same size
        kv.pushpull("w", flat)
        assert (flat.asnumpy() == 2).all()
        rows = mx.nd.sparse.row_sparse_array((np.ones((1, 2), np.float32), [1]), shape=(4, 2))
        out = mx.nd.zeros((4, 2))
        kv.pushpull("w", rows, out=out)
        assert np.array_equal(out.asnumpy(), [[0, 0], [2, 2], [0, 0], [0, 0]])
        other, half = mx.nd.ones(9), mx.nd.ones((4, 2), dtype="float16")
        for array, words in ((other, "shape (9,)"), (half, "float16")):
            for call in (kv.push, kv.pull, kv.pushpull):
                try:
                    call("w", array)
                except mx.MXNetError as error:
                    assert words in str(error) and "'w'" in str(error), error
                else:
                    raise AssertionError(words)
        kv.push("w", flat)  # and none of that is an obstacle
        kv.pull("w", out)
        assert (out.asnumpy() == 4).all()
        print("all kinds right")

    outputs = worker_outputs(run_cluster(program))
    assert all("all kinds right" in output for output in outputs), outputs
