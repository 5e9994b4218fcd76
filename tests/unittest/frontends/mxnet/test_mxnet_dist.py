"""MXNet's own nightly distributed tests, on MXNet's store and on HiPress's, with the same bits.

The scripts of mxnet_dist/ do not use HiPress. Each runs in a job on the stock wheel, then,
unmodified and under the same names, on HiPress's. Its expectations must hold in both, and its
workers must pull the same values in both.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from harness.cluster import run_cluster

pytest.importorskip("mxnet")
pytestmark = pytest.mark.timeout(300)

SCRIPTS = Path(__file__).parents[2] / "mxnet_dist"
OURS = {"worker_prefix": [sys.executable, "-m", "mxnet_hipress"]}
SERVE = "from mxnet.kvstore import kvstore_server\nkvstore_server._init_kvstore_server_module()"
STOCK = {"server_command": [sys.executable, "-c", SERVE]}  # as `import mxnet` does
# MXNet's servers read whether to keep float16 weights in float32 before anybody has set it. Here
# glibc fills what it allocates with ones, but for its tcache, which is off: all runs read yes.
FILLED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.perturb=254"}


def run_job(folder, script, *args, workers=3, servers=2, seconds=120, **options):
    """Run a script in a job of STOCK or OURS.

    Returns:
        The results that its workers kept, by rank.
    """
    folder.mkdir()
    run_cluster(
        SCRIPTS / script,
        workers,
        servers,
        seconds,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", **FILLED},
        args=[str(folder), *args],
        **options,
    )
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(workers)]


def run_both(folder, script, *args, **shape):
    """Return run_job's results of a job on MXNet's store, and of one on HiPress's."""
    stock = run_job(folder / "stock", script, *args, **shape, **STOCK)
    return stock, run_job(folder / "ours", script, *args, **shape, **OURS)


def assert_same(stock, ours, at_least, tolerance=0.0):
    """Check that HiPress's results equal MXNet's in values, dtypes and shapes.

    Args:
        at_least: Minimum number of results.
        tolerance: Relative and absolute tolerance, where another order of a sum may show.
    """
    for rank, (theirs, mine) in enumerate(zip(stock, ours)):
        assert set(theirs) == set(mine) and len(mine) >= at_least, (rank, len(mine))
        for name, found in mine.items():
            expected = theirs[name]
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (rank, name)
            if tolerance:
                assert np.allclose(found, expected, rtol=tolerance, atol=tolerance), (rank, name)
            else:
                assert np.array_equal(found, expected), (rank, name)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["dist_sync", "dist_device_sync"])
def test_dense_keys(tmp_path, store):
    stock, ours = run_both(tmp_path, "dense.py", "--store", store)
    # HiPress keeps float16 weights in float32 also without multi_precision; for MXNet's see FILLED.
    assert all((kept["lost in float16"] == 1 + 3 * 2**-9).all() for kept in ours)
    assert_same(stock, ours, at_least=200)


@pytest.mark.slow
def test_dense_keys_with_multi_precision(tmp_path):
    assert_same(*run_both(tmp_path, "dense.py", "--multi-precision"), at_least=200)


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [[], ["--optimizer"], ["--optimizer", "--multi-precision"], ["--threshold", "0.25"]],
    ids=" ".join,
)
def test_2bit(tmp_path, args):
    assert_same(*run_both(tmp_path, "compressed.py", *args), at_least=60)


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--late"], ["--optimizer", "sgd"]], ids=" ".join)
def test_row_sparse_keys(tmp_path, args):
    assert_same(*run_both(tmp_path, "sparse.py", *args), at_least=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ["--optimizer", "sgd", "--late"],
        ["--optimizer", "sgd", "--multi-precision"],
        ["--multi-precision"],
        ["--multi-precision", "--late"],
    ],
    ids=" ".join,
)
def test_row_sparse_keys_in_float16(tmp_path, args):
    both = run_both(tmp_path, "sparse.py", "--dtype", "float16", *args)
    # Without multi_precision see test_dense_keys.
    assert_same(*both, at_least=60, tolerance=0 if "--multi-precision" in args else 4e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "at_least"),
    [
        ("types", 2),
        ("servers", 20),
        ("states", 20),
        ("allreduce", 15),
        ("sparse", 6),
        ("reload", 1),
    ],
)
def test_trainer(tmp_path, part, at_least):
    assert_same(*run_both(tmp_path, "trainer.py", "--part", part, workers=2), at_least=at_least)


def test_sparse_gradients_of_dense_weights_are_summed(tmp_path):
    # MXNet's Trainer offers this on its distributed stores; its servers abort.
    run_job(tmp_path / "ours", "trainer.py", "--part", "embedding", workers=2, **OURS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "tolerance"),
    [([], 1e-6), (["--dtype", "float16"], 2e-3), (["--dtype", "float16", "--multi-precision"], 0)],
    ids=["float32", "float16", "multi_precision"],
)
def test_optimizers_on_the_servers(tmp_path, args, tolerance):
    assert_same(*run_both(tmp_path, "optimizers.py", *args), at_least=70, tolerance=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("args", [[], ["--compressed"]], ids=" ".join)
@pytest.mark.parametrize("store", ["dist_async", "dist_device_async"])
def test_async(tmp_path, store, args):
    assert_same(*run_both(tmp_path, "asynchronous.py", "--store", store, *args), at_least=5)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["dist", "dist_sync", "dist_device_sync", "dist_async"])
def test_names_and_refusals(tmp_path, store):
    assert_same(*run_both(tmp_path, "refused.py", "--store", store), at_least=20)
