"""HiPress for MXNet: distributed key-value stores that compress gradients in both directions.

    import mxnet_hipress                        # before mxnet
    import mxnet as mx
    kv = mx.kv.create("dist_sync_hipress")
    kv.set_gradient_compression({"type": "onebit"})

The import registers the types dist_sync_hipress, dist_device_sync_hipress and dist_async_hipress
with MXNet. install() makes MXNet's own names create these stores; a script that asks for them in
MXNet's words alone then gets MXNet's arithmetic. In a server or scheduler of a job
(DMLC_ROLE) the import serves until the job ends and then exits, as MXNet's own import does.
"""

# What belongs here: MXNet's arrays, arguments, errors and optimizers. The path of
# `kv.pushpull("weight", gradient, out=total)`, with servers:
#
#     kvstore.py, _keys.py    find the key; add up the arrays of several devices
#     src/bindings/mxnet
#       engine.cc             schedules an operation on MXNet's engine, which starts when the
#                             gradient is computed. Operations of one key keep their order.
#       handover.h            an operation that was followed by another within 1 ms last time
#                             waits for that one: a Trainer's loop is one batch for the store
#     src/kvstore, src/graph  flow of the key: encode and send; on a server receive, merge, update,
#                             encode and send to all workers; receive and decode into `total`
#     server.py               on a server: MXNet's optimizer, between merge and encode
#
# A server's sum is encoded with the server's residual, and the codec's parameters are scaled for a
# sum of N payloads. Weights (with an optimizer on the servers) travel uncompressed unless asked
# for. With type `none` the path is the same: encode and decode do nothing.
#
# **row_sparse keys.** A thread of _sparse.py carries out an operation of MXNet's engine: it sends
# the rows as commands (_commands.py) to the tables of the servers (server.py), where the
# store's optimizer updates them. A command that must wait for other workers is asked again later.
#
# **Unmodified scripts in elastic jobs.** elastic_store.py recognizes a step by the keys that a
# script pushes. It keeps the step's gradients until their sums exist, and sums the copies again in
# the next view if the step fails. The learning rate of rank 0 travels in each step's sum
# (_store_state.py), because scripts of restarted workers are at another epoch.

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable

__all__ = ["DiLoCoTrainer", "KVStore", "install", "load_operators"]

_OWN_NAMES = ("dist_sync_hipress", "dist_device_sync_hipress", "dist_async_hipress")

if os.environ.get("DMLC_ROLE") in ("server", "scheduler"):
    from mxnet_hipress import boot

    boot.exit_with(boot.main())

if (
    os.environ.get("DMLC_ROLE") == "worker"
    and "mxnet" in sys.modules
    and not os.environ.get("HIPRESS_LAUNCHED")
):
    raise ImportError(
        "import mxnet_hipress before mxnet, or launch the job with --hipress: the servers of this "
        "job have imported mxnet first, too, which made them MXNet's own servers"
    )

from mxnet_hipress import _compat  # noqa: E402

_compat.import_mxnet()

from mxnet import kvstore as _kvstore  # noqa: E402
from mxnet.base import MXNetError  # noqa: E402
from mxnet.kvstore import KVStoreBase  # noqa: E402

from mxnet_hipress import _saving, elastic_store  # noqa: E402
from mxnet_hipress.diloco import DiLoCoTrainer  # noqa: E402
from mxnet_hipress.elastic_store import ElasticStore  # noqa: E402
from mxnet_hipress.kvstore import STOCK_NAMES, KVStore  # noqa: E402


def _register(names: tuple[str, ...]) -> None:
    kind = ElasticStore if elastic_store.is_asked_for() else KVStore
    for name in names:
        KVStoreBase.kv_registry[name] = functools.partial(kind, name)


def install() -> None:
    """Make mx.kv.create("dist_sync") and MXNet's other distributed types create ours."""
    _register(STOCK_NAMES)


def load_operators() -> None:
    """Register every codec as operators of MXNet; see mxnet_hipress.operators."""
    from mxnet_hipress import operators

    operators.register()


def _guard(create: Callable[..., object]) -> Callable[..., object]:
    """Return mx.kv.create with a check of the store's name, for workers.

    MXNet creates its own store for every name that contains "dist". That store would wait forever
    for MXNet's servers.
    """

    @functools.wraps(create)
    def checked(name: str = "local") -> object:
        known = KVStoreBase.kv_registry
        if isinstance(name, str) and "dist" in name.lower() and name.lower() not in known:
            raise MXNetError(
                f"this job is HiPress's, and has no store {name!r}; there are "
                f"{', '.join(_OWN_NAMES)}, and with --hipress or mxnet_hipress.install() MXNet's "
                f"{', '.join(STOCK_NAMES)}"
            )
        return create(name)

    return checked


_register(_OWN_NAMES)
_saving.extend()
if os.environ.get("DMLC_ROLE") == "worker" or elastic_store.is_asked_for():
    _kvstore.create = _kvstore.kvstore.create = _guard(_kvstore.create)
