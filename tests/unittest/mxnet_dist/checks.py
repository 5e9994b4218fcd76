"""Shared code of this folder's scripts: their arguments, what they expect, and what they keep.

Each script is a worker of a distributed job. It runs on unmodified MXNet, without any use of
HiPress. It computes its expected values itself. It also keeps what it pulls, in a file for each
worker, so that two stores can be compared bit for bit.
"""

import argparse
import contextlib

import mxnet as mx
import numpy as np

SMALL = (2, 3)
ODD = (121, 121)
BIG = (120, 120)
"""Shape of the one array, apart from ODD, that is partitioned among the servers: jobs run with
MXNET_KVSTORE_BIGARRAY_BOUND=1000."""


class Checks:
    """Checks of what one worker of a job expects, and a record of its results.

    Args:
        folder: Folder of the results.
        kv: The store that is tried.
    """

    def __init__(self, folder, kv):
        self._path = f"{folder}/{kv.rank}.npz"
        self.kv, self.rank, self.workers = kv, kv.rank, kv.num_workers
        self._kept = {}

    def keep(self, name, array):
        """Keep an array under a name that no other has; return it as NumPy's."""
        values = array if isinstance(array, (np.ndarray, float, int, str)) else array.asnumpy()
        assert name not in self._kept, name
        self._kept[name] = np.asarray(values)
        return values

    def equal(self, name, array, expected):
        """Check that `array` is exactly `expected` (an array or a number), and keep it."""
        found = self.keep(name, array)
        wrong = np.argwhere(np.asarray(found != expected))
        assert len(wrong) == 0, (name, self.rank, wrong[:5], found, expected)

    def refused(self, name, errors, call, *args, **options):
        """Check that the call raises one of `errors`, and keep that it does."""
        try:
            call(*args, **options)
        except errors:
            self._kept[name] = np.array(1)
            return
        raise AssertionError(f"{name}: was not refused")

    def pulled(self, key, shape, dtype="float32", stores=None):
        """Return what the store holds for a key."""
        out = mx.nd.full(shape, 77, dtype=dtype)  # which nothing here is
        (stores or self.kv).pull(key, out=out)
        return out

    def rank_sum(self):
        """Return the sum of what all workers push, where each pushes its rank + 1."""
        return self.workers * (self.workers + 1) // 2


def arguments(**more):
    """Parse the script's arguments: where results go, which store; `more` are options with
    defaults."""
    parser = argparse.ArgumentParser(description="one worker of a job")
    parser.add_argument("folder")
    parser.add_argument("--store", default="dist_sync")
    for name, default in more.items():
        if isinstance(default, bool):
            parser.add_argument("--" + name.replace("_", "-"), action="store_true")
        else:
            parser.add_argument("--" + name.replace("_", "-"), default=default, type=type(default))
    return parser.parse_args()


@contextlib.contextmanager
def job(options):
    """Create the store; save the results when all workers have come to the end."""
    checks = Checks(options.folder, mx.kv.create(options.store))
    assert checks.kv.type == options.store
    assert 0 <= checks.rank < checks.workers
    yield checks
    mx.nd.waitall()
    np.savez(checks._path, **checks._kept)
    checks.kv._barrier()


def constant(shape, value, dtype="float32"):
    """Return a new array, all of whose elements are `value`."""
    return mx.nd.full(shape, value, dtype=dtype)


def two_bit(gradient, residual, threshold):
    """Compute 2bit as MXNet's manual defines it: what is sent, and the new residual; both in
    float32."""
    total = residual + gradient
    step = np.float32(threshold)
    sent = np.where(total >= step, step, np.where(total <= -step, -step, np.float32(0)))
    return sent, total - sent
