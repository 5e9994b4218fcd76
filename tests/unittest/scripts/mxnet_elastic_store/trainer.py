"""Trains with a Trainer, as a script without elasticity does."""

import mxnet as mx
from mxnet import autograd, gluon

kv = mx.kv.create("dist_device_sync")
mx.random.seed(kv.rank)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(96, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(4))
net.initialize(mx.init.Xavier())
schedule = mx.lr_scheduler.FactorScheduler(5, 0.9, base_lr=0.05)
trainer = gluon.Trainer(
    net.collect_params(),
    "sgd",
    {"momentum": 0.9, "lr_scheduler": schedule},
    kvstore=kv,
    compression_params={"type": "onebit", "min_size": 10},
)
losses = []
for _step in range(60):
    values = mx.nd.random.normal(shape=(16, 64))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(values), values[:, :4] * 2)
    loss.backward()
    trainer.step(16 * kv.num_workers)
    losses.append(loss.mean().asscalar())
trainer.save_states(f"{kv.rank}.states")
trained = [p for p in net.collect_params().values() if p.grad_req != "null"]
total = sum(p.data().sum().asscalar() for p in trained)
print("done", losses[-1] < 0.7 * losses[0], total, trainer.learning_rate, kv.stats()["steps"])
