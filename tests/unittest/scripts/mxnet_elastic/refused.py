"""Makes calls that elastic training refuses, and prints the errors."""

import mxnet as mx
from mxnet import gluon

import mxnet_hipress.elastic as elastic


def net(**options):
    made = gluon.nn.Dense(4, **{"in_units": 8, **options})
    made.initialize()
    return made


def state(*parts, of=None, **options):
    dense = of or net()
    trainer = gluon.Trainer(dense.collect_params(), "sgd", **options)
    return elastic.State(dense, trainer, *parts)


sparse = gluon.nn.Embedding(8, 4, sparse_grad=True)
sparse.initialize()
for refused in (
    lambda: state(of=net(in_units=0)),
    lambda: state(kvstore="dist_sync"),
    lambda: state(compression_params={"type": "2bit"}),
    lambda: state(of=net(dtype="float64")),
    lambda: state(of=sparse),
    lambda: state({"type": "twobit"}),
    lambda: state({"type": "onebit", "shared_momentum": 0.5}),
    lambda: state({"type": "onebit", "pull": "none"}),
    lambda: elastic.State(net(), mx.optimizer.SGD(lr_scheduler=lambda step: 0.1)),
    lambda: state().trainer.step(1),
    lambda: state().commit(),
    lambda: elastic.run(lambda state: None)(state()),
):
    try:
        refused()
    except Exception as error:
        print(str(error).splitlines()[0])
