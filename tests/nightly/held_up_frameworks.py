"""Holds up all processes of random jobs of MXNet and Keras, as held_up.py does PyTorch's. Minutes.

Not for CI. Gluon's Trainer and Keras's loops, with servers and without, in static and in elastic
jobs: each must end with 0 everywhere, and with the same weights on all workers.

    python tests/nightly/held_up_frameworks.py --jobs 40 --seed 1
"""

from __future__ import annotations

import sys

import havoc  # first: it finds the harness
import held_up

from harness.cluster import Cluster
from harness.elastic import ElasticJob
from harness.processes import Processes, base_environment
from hipress.casync import topologies

GLUON = """
import hashlib, json, os
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

settings = json.loads(os.environ["HELD_UP"])
mx.random.seed(0)
net = gluon.nn.HybridSequential()
for width in [settings["width"]] * settings["layers"]:
    net.add(gluon.nn.Dense(width, in_units=width))
net.initialize(mx.init.Normal(0.05))
net.hybridize()
store = mx.kv.create("dist_sync")
trainer = gluon.Trainer(
    net.collect_params(), "sgd", {"learning_rate": 1e-3, "momentum": 0.5}, kvstore=store,
    update_on_kvstore=settings["on_server"],
    compression_params={"type": settings["type"], "min_size": 1000})
dice = np.random.RandomState(store.rank)
for step in range(settings["steps"]):
    values = mx.nd.array(dice.randn(4, settings["width"]))
    with autograd.record():
        loss = net(values).square().mean()
    loss.backward()
    trainer.step(4 * store.num_workers)
store.barrier()
arrays = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
found = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
print("result", found.hexdigest(), flush=True)
"""

GLUON_ELASTIC = """
import hashlib, json, os
import mxnet_hipress.elastic as elastic
import mxnet as mx
from mxnet import autograd, gluon

settings = json.loads(os.environ["HELD_UP"])
mx.random.seed(0)
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(96, in_units=64), gluon.nn.Dense(4, in_units=96))
net.initialize(mx.init.Normal(0.1))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=None)
state = elastic.State(
    net, trainer, {"type": settings["type"], "min_size": 256}, check_every=5, timeout=60)

@elastic.run
def train(state):
    while state.step < settings["steps"]:
        with autograd.record():
            loss = net(mx.nd.ones((8, 64))).square().mean()
        loss.backward()
        state.trainer.step(8)
        state.commit()

train(state)
arrays = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
found = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
print("result", state.epoch, found.hexdigest(), flush=True)
"""

KERAS = """
import hipress.tensorflow as hvd
import hashlib, json, os
import keras
import numpy as np

settings = json.loads(os.environ["HELD_UP"])
width = settings["width"]
keras.utils.set_random_seed(hvd.rank())
model = keras.Sequential(
    [keras.Input((width,))] + [keras.layers.Dense(width) for _ in range(settings["layers"])])
optimizer = hvd.DistributedOptimizer(
    keras.optimizers.SGD(1e-3, momentum=0.5), {"type": settings["type"], "min_size": 1000})
hvd.broadcast_variables(model.variables)
model.compile(optimizer, "mse", jit_compile=False, run_eagerly=settings["eager"])
dice = np.random.default_rng(hvd.rank())
values = dice.standard_normal((4 * settings["steps"], width)).astype(np.float32)
model.fit(values, values, batch_size=4, verbose=0)
found = hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in model.trainable_variables))
print("result", found.hexdigest(), flush=True)
"""

KERAS_ELASTIC = """
import hashlib, json, os
import hipress.tensorflow.elastic as elastic
import keras
import numpy as np

settings = json.loads(os.environ["HELD_UP"])
keras.utils.set_random_seed(os.getpid())
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(96), keras.layers.Dense(4)])
state = elastic.State(
    model, keras.optimizers.SGD(0.01), {"type": settings["type"], "min_size": 256},
    check_every=5, timeout=60)
model.compile(state.optimizer, "mse", jit_compile=False)

@elastic.run
def train(state):
    def batches():
        while True:
            yield np.ones((8, 64), np.float32), np.zeros((8, 4), np.float32)
    left = settings["steps"] - state.step
    if left > 0:
        model.fit(batches(), steps_per_epoch=left, verbose=0, callbacks=[state.callback()])

train(state)
found = hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in model.trainable_variables))
print("result", state.epoch, found.hexdigest(), flush=True)
"""

PROGRAMS = {
    "gluon": GLUON, "gluon elastic": GLUON_ELASTIC, "keras": KERAS, "keras elastic": KERAS_ELASTIC,
}  # fmt: skip


class Job(held_up.Job):
    """One of these."""

    deadline = 600
    """Importing a framework takes a process that is held up a minute."""

    @classmethod
    def draw(cls, dice: held_up.random.Random) -> Job:
        """A random one."""
        workers = dice.randint(2, 3)
        kind = dice.choice(["gluon", "gluon", "gluon elastic", "keras", "keras", "keras elastic"])
        env = {
            "HIPRESS_TLS": dice.choice(["auto", "on"]),
            "HIPRESS_STREAMS": dice.choice(["0", "3"]),
            "HIPRESS_SHARED_MEMORY": dice.choice(["auto", "off"]),
            "HIPRESS_START_TIMEOUT": "200",  # the frameworks' imports are held up, too
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        settings: dict[str, object] = {"type": dice.choice(["none", "onebit", "maxmin", "auto"])}
        if "elastic" in kind:
            settings["steps"] = 100 * dice.randint(1, 3)
            return cls(kind, workers, 0, settings, env, dice)
        servers = dice.choice([0, 1, 2])
        if not servers:
            flat = [t for t in topologies.names(servers=False)
                    if not topologies.TOPOLOGIES[t].needs_devices_per_host]  # fmt: skip
            env["HIPRESS_TOPOLOGY"] = dice.choice(flat)
        settings.update(
            steps=dice.randint(1, 60), width=dice.choice([32, 200, 700]),
            layers=dice.randint(1, 4), eager=dice.choice([False, True]),
            on_server=bool(servers) and dice.choice([False, True]),
        )  # fmt: skip
        return cls(kind, workers, servers, settings, env, dice)

    def start(self, env: dict[str, str]) -> Processes:
        """The job's processes."""
        program = PROGRAMS[self.kind]
        if "elastic" in self.kind:
            command = [sys.executable, "-c", program]
            return ElasticJob(command, self.workers, self.workers, env, heartbeat_ms=12000)
        prefix = [sys.executable, *(["-m", "mxnet_hipress"] if self.kind == "gluon" else [])]
        return Cluster(program, self.workers, self.servers, env, prefix, base=base_environment())


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=40))
