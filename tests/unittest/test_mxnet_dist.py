"""What MXNet's own nightly distributed tests try, on MXNet's store and ours, with the same bits.

The scripts of mxnet_dist/ know nothing of HiPress. Each runs in a job on the stock wheel, then,
unchanged and under the same names, on ours: what it expects must hold in both, and what its workers
pull must be the same in both.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from cluster import run_cluster

pytest.importorskip("mxnet")
pytestmark = pytest.mark.timeout(300)

SCRIPTS = Path(__file__).parent / "mxnet_dist"
OURS = {"worker_prefix": [sys.executable, "-m", "mxnet_hipress"]}
STOCK = {"server_command": [sys.executable, "-c", "import mxnet"]}


def run_both(folder, script, *args, workers=3, servers=2, seconds=120):
    """Runs a script in a job of each store.

    :return: what its workers kept, by rank: stock's, ours
    """
    kept = []
    for name, options in (("stock", STOCK), ("ours", OURS)):
        (folder / name).mkdir()
        run_cluster(
            SCRIPTS / script,
            workers,
            servers,
            seconds,
            env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000"},
            args=[str(folder / name), *args],
            **options,
        )
        kept.append([dict(np.load(folder / name / f"{r}.npz")) for r in range(workers)])
    return kept


def assert_same(stock, ours, at_least, tolerance=0.0):
    """Ours is what stock's is, in values, dtypes and shapes.

    :param at_least: so many results there are, at least
    :param tolerance: relative and absolute, where another order of a sum may show
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


@pytest.mark.parametrize("store", ["dist_sync", "dist_device_sync"])
@pytest.mark.parametrize("precision", [[], ["--multi-precision"]], ids=["", "multi_precision"])
def test_dense_keys(tmp_path, store, precision):
    assert_same(*run_both(tmp_path, "dense.py", "--store", store, *precision), at_least=200)


@pytest.mark.parametrize(
    "args",
    [[], ["--optimizer"], ["--optimizer", "--multi-precision"], ["--threshold", "0.25"]],
    ids=" ".join,
)
def test_2bit(tmp_path, args):
    assert_same(*run_both(tmp_path, "compressed.py", *args), at_least=60)
