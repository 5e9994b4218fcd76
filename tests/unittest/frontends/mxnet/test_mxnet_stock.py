"""HiPress's store and MXNet's own agree on the same pushes, in separate clusters."""

import sys

import numpy as np
import pytest

from harness.cluster import run_cluster, worker_outputs

pytest.importorskip("mxnet")

STOCK_SERVER = [sys.executable, "-c", "import mxnet"]
OURS = {"worker_prefix": [sys.executable, "-m", "mxnet_hipress"]}
STOCK = {"server_command": STOCK_SERVER}


def program():
    import json
    import sys

    import mxnet as mx
    import numpy as np

    folder, compression, ours = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "ours"
    kv = mx.kv.create("dist_sync")
    results = {}
    if compression:
        kv.set_gradient_compression(compression)  # also to HiPress's, with MXNet's parameters alone
    # Keys whole on one server, cut over both (the bound is 1000 below), of one element, odd.
    shapes = {"a": (7, 11), "b": (1000, 3), "c": (1,), "d": (50, 41), "e": (2, 3)}
    if not compression:
        shapes["half"] = (33, 100)  # MXNet compresses no float16
    dtypes = {key: "float16" if key == "half" else "float32" for key in shapes}
    for i, (key, shape) in enumerate(shapes.items()):
        start = np.random.RandomState(i).uniform(-1, 1, shape)
        kv.init(key, mx.nd.array(start, dtype=dtypes[key]))
        out = mx.nd.zeros(shape, dtype=dtypes[key])
        kv.pull(key, out)
        results[f"{key} init"] = out.asnumpy()
    for kind in ("random", "whole"):
        numbers = np.random.RandomState(100 + kv.rank)
        for step in range(6):
            for key, shape in shapes.items():
                values = numbers.uniform(-2, 2, (2, *shape))
                if kind == "whole":
                    values = np.round(values * 8)
                devices = [mx.nd.array(value, dtype=dtypes[key]) for value in values]
                kv.push(key, devices if step % 2 else devices[0], priority=-step)
                if not ours:
                    # Stock may start a key's second push before its first has ended, and then
                    # counts one worker twice. HiPress's store keeps them in order.
                    mx.nd.waitall()
                if step % 3 == 2:  # the other pushes have no pull
                    out = mx.nd.zeros(shape, dtype=dtypes[key])
                    kv.pull(key, out)
                    results[f"{key} {kind} {step}"] = out.asnumpy()
    if not compression:
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, wd=0.01))
        kv._barrier()
        for step in range(4):
            for key, shape in shapes.items():
                if key == "half":
                    continue
                kv.push(key, mx.nd.array(numbers.uniform(-2, 2, shape)))
                out = mx.nd.zeros(shape)
                kv.pull(key, out)
                results[f"{key} optimized {step}"] = out.asnumpy()
    np.savez(f"{folder}/{sys.argv[3]}-{kv.rank}.npz", **results)
    kv._barrier()


def run_both(folder, compression, workers):
    for name, options in (("stock", STOCK), ("ours", OURS)):
        run_cluster(
            program,
            workers,
            servers=2,
            timeout=120,
            env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000"},
            args=[str(folder), compression, name],
            **options,
        )
    stock, ours = (
        [np.load(folder / f"{n}-{r}.npz") for r in range(workers)] for n in ("stock", "ours")
    )
    assert len(ours[0].files) > 15 and set(ours[0].files) == set(stock[0].files)
    for rank in range(1, workers):  # all workers have the same bits
        assert all(np.array_equal(ours[0][name], ours[rank][name]) for name in ours[0].files)
    return stock[0], ours[0]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("threshold", ["0.5", "0.25"])
def test_2bit_agrees_bit_for_bit(tmp_path, threshold):
    compression = f'{{"type": "2bit", "threshold": {threshold}}}'
    stock, ours = run_both(tmp_path, compression, workers=2)
    for name in ours.files:
        assert np.array_equal(ours[name], stock[name]), name
    sums = {float(v) for name in ours.files if "init" not in name for v in np.unique(ours[name])}
    step = float(threshold)
    assert sums <= {-2 * step, -step, 0.0, step, 2 * step} and len(sums) == 5


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_uncompressed_agrees_to_rounding_and_whole_numbers_exactly(tmp_path):
    """Uncompressed sums equal those of MXNet's own store: whole numbers exactly, others up to
    rounding.

    Cost: MXNet's own store runs in addition to HiPress's, and its servers cannot be forked.
    """
    stock, ours = run_both(tmp_path, "null", workers=3)
    for name in ours.files:
        if "init" in name or ("whole" in name and "half" not in name):
            assert np.array_equal(ours[name], stock[name]), name
        tolerance = 4e-3 if "half" in name else 2e-6
        assert np.allclose(ours[name], stock[name], rtol=tolerance, atol=tolerance), name


def small_key():
    import mxnet as mx

    def pushed(name, params):
        kv = mx.kv.create(name)
        kv.set_gradient_compression(params)
        kv.init("w", mx.nd.zeros((2, 3)))
        kv.push("w", mx.nd.full((2, 3), 0.4))
        out = mx.nd.ones((2, 3))
        kv.pull("w", out)
        kv.push("w", mx.nd.full((2, 3), 0.4))  # with what was left over, beyond the threshold
        again = mx.nd.ones((2, 3))
        kv.pull("w", again)
        return [out.asnumpy().max().item(), again.asnumpy().max().item()]

    two_bit = {"type": "2bit", "threshold": 0.5}
    for name in ("dist_sync", "dist_device_sync", "dist_sync_device"):
        assert pushed(name, two_bit) == [0, 0.5], name
    # A parameter or name of HiPress selects HiPress's defaults: small gradients go whole.
    for name, more in (
        ("dist", {"min_size": 1024}),
        ("dist_device_sync", {"pull": "auto"}),
        ("dist_sync", {"topology": "ps"}),
        ("dist_sync_hipress", {}),
    ):
        first, _ = pushed(name, {**two_bit, **more})
        assert abs(first - 0.4) < 1e-6, name
    print("as promised", flush=True)


def test_names_and_parameters_of_mxnet_ask_for_its_arithmetic():
    results = run_cluster(small_key, 1, servers=1, timeout=60, **OURS)
    assert "as promised" in worker_outputs(results)[0]
