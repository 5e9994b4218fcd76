"""Makes calls that the elastic store refuses, and prints the errors."""

import mxnet as mx

import mxnet_hipress


def store(name="dist_sync_hipress", optimizer=True):
    kv = mx.kv.create(name)
    if optimizer:
        kv.set_optimizer(mx.optimizer.SGD())
    kv.init([1, 2], [mx.nd.ones(4)] * 2)
    return kv


def push(kv, *keys):
    for key in keys:
        kv.push(key, mx.nd.ones(4))


def later(kv):
    kv._steps, kv._state.gradients, kv._state.names = 1, {1: 0, 2: 0}, {1: "1", 2: "2"}
    return kv


dense = mx.gluon.nn.Dense(2, in_units=2)
dense.initialize()
row_sparse = mx.nd.zeros((4, 4), stype="row_sparse")
for refused in (
    lambda: mx.kv.create("dist_async_hipress"),
    lambda: mx.kv.create("dist_sync"),
    lambda: store().init(3, row_sparse),
    lambda: store().init(3, mx.nd.ones(4, dtype="float64")),
    lambda: store().init([3, 3], [mx.nd.ones(4)] * 2),
    lambda: push(store(), 3),
    lambda: (lambda kv: (push(kv, 1), kv.init(3, mx.nd.ones(4))))(store()),
    lambda: push(store(optimizer=False), 1, 2, 1),
    lambda: push(later(store()), 1, 1),
    lambda: store().set_gradient_compression({"type": "auto", "warmup_steps": 3}),
    lambda: store().set_gradient_compression({"type": "twobit"}),
    lambda: store().set_gradient_compression({"type": "onebit", "pull": "none"}),
    lambda: store(optimizer=False).save_optimizer_states("states"),
    lambda: store().row_sparse_pull(1),
    lambda: store().push(1, mx.nd.ones(5)),
    lambda: mxnet_hipress.DiLoCoTrainer(dense.collect_params(), "sgd", sync_every=3),
):
    try:
        refused()
        print("nothing")
    except (mx.base.MXNetError, ValueError) as error:
        print(str(error).splitlines()[0])
