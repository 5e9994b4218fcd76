"""A worker of chaos_mxnet.py's jobs: an MXNet script without any use of HiPress.

Its one argument is a JSON object, which chaos_mxnet.py drew. It prints "running" once it trains,
and at the end "done" with a digest of what it holds, or "failed:" with the error's sentence.
"""

import hashlib
import json
import os
import random
import sys
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

settings = json.loads(sys.argv[1])
dice = random.Random(settings["seed"])  # the same numbers on every worker
kv = None


def running(step):
    """Surround a step of every program but Module's."""
    if step == 1:
        print("running", flush=True)
    leaves = settings["leaves"]
    if leaves and kv.rank == leaves["rank"] and step == leaves["step"]:
        print("leaves", flush=True)
        sys.exit(0)
    if dice.random() < settings["barriers"]:
        kv.barrier()
    if settings["nap"]:
        time.sleep(settings["nap"])
        print("step", step, flush=True)


def digest(arrays):
    """Return the digest of everything that this worker pulled last."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(array.asnumpy().tobytes())
    return total.hexdigest()[:16]


def compress():
    """Set compression parameters, another type each time."""
    params = {"type": dice.choice(settings["types"]), "min_size": dice.choice([0, 1024])}
    return {**params, **settings["params"]}


def states(save, load):
    """Save optimizer states and load them again: on one worker, or on each if none serves."""
    mine = os.path.join(settings["folder"], f"states-{kv.rank}")
    if kv.rank == 0 or not settings["servers"]:
        save(mine)
        load(mine)
    kv.barrier()


def arrays():
    """Train dense keys, float32 and float16, with one of the methods to push and pull."""
    if settings["compressed"]:
        kv.set_gradient_compression(compress())
    keys, gradients = [], []
    for number, size in enumerate(settings["sizes"]):
        dtype = "float16" if number in settings["halves"] else "float32"
        keys.append(mx.nd.zeros(size, dtype=dtype))
        gradients.append(mx.nd.ones(size, dtype=dtype) * (kv.rank + 1))
        kv.init(number, keys[-1])
    if settings["optimizer"]:
        kv.set_optimizer(mx.optimizer.create(settings["optimizer"], learning_rate=2**-10))
    exact = not settings["compressed"] and not settings["optimizer"]
    for step in range(settings["steps"]):
        running(step)
        if settings["compressed"] and dice.random() < 0.05:
            kv.set_gradient_compression(compress())
        for number, out in enumerate(keys):
            if settings["pushpull"]:
                kv.pushpull(number, gradients[number], out=out, priority=-number)
            else:
                kv.push(number, gradients[number], priority=-number)
                kv.pull(number, out=out, priority=-number)
        if dice.random() < 0.5:
            keys[-1].wait_to_read()
        if settings["optimizer"] and dice.random() < 0.03:
            states(kv.save_optimizer_states, kv.load_optimizer_states)
        if exact and dice.random() < 0.2:
            expected = kv.num_workers * (kv.num_workers + 1) / 2
            assert all((key.asnumpy() == expected).all() for key in keys), "a sum is wrong"
    return keys


def sparse():
    """Train row_sparse keys together with a dense one."""
    shape = (100, 16)
    dense, rows = mx.nd.zeros(5000), mx.nd.zeros(shape).tostype("row_sparse")
    if settings["compressed"]:
        kv.set_gradient_compression(compress())
    kv.init("dense", dense)
    kv.init("rows", rows)
    kv.set_optimizer(mx.optimizer.create(settings["optimizer"] or "sgd", learning_rate=2**-10))
    out = mx.nd.sparse.zeros("row_sparse", shape)
    for step in range(settings["steps"]):
        running(step)
        wanted = mx.nd.array(sorted(dice.sample(range(100), 5)))
        data = np.ones((5, 16), np.float32)
        kv.push("rows", mx.nd.sparse.row_sparse_array((data, wanted), shape=shape))
        kv.row_sparse_pull("rows", out=out, row_ids=wanted)
        kv.push("dense", mx.nd.ones(5000))
        kv.pull("dense", out=dense)
        if dice.random() < 0.5:
            out.wait_to_read()
    kv.barrier()
    kv.row_sparse_pull("rows", out=out, row_ids=mx.nd.arange(100))
    return [dense, out.tostype("default")]


class Scale(gluon.HybridBlock):
    """Layer that MXNet computes in float16 on a CPU, unlike a Dense one."""

    def __init__(self, width):
        super().__init__()
        self.weight = self.params.get("weight", shape=(8, width), init=mx.init.One())

    def hybrid_forward(self, F, x, weight):
        return F.relu(x * weight)


def trainer():
    """Train with Gluon's Trainer."""
    width = settings["width"]
    net = gluon.nn.HybridSequential()
    for _ in range(settings["layers"]):
        if settings["half"]:
            net.add(Scale(width))
        else:
            net.add(gluon.nn.Dense(width, in_units=width, activation="relu"))
    dtype = "float16" if settings["half"] else "float32"
    net.cast(dtype)
    net.initialize(mx.init.Xavier())
    if settings["hybridized"]:
        net.hybridize()
    training = gluon.Trainer(
        net.collect_params(),
        settings["optimizer"] or "sgd",
        {"learning_rate": 2**-10, "multi_precision": settings["half"]},
        kvstore=kv,
        update_on_kvstore=settings["on_kvstore"],
        compression_params=compress() if settings["compressed"] else None,
    )
    data = mx.nd.random.normal(shape=(8, width)).astype(dtype)
    for step in range(settings["steps"]):
        running(step)
        with autograd.record():
            loss = net(data).square().mean()
        loss.backward()
        training.step(8 * kv.num_workers)
        if dice.random() < 0.03:
            states(training.save_states, training.load_states)
        if dice.random() < 0.3:
            loss.wait_to_read()
    return [param.data() for param in net.collect_params().values()]


def module():
    """Train with Module's fit, which creates a separate store from the one that it receives."""
    label = np.random.RandomState(kv.rank).randint(0, 4, 64)
    data = mx.io.NDArrayIter(np.random.RandomState(kv.rank).rand(64, 20), label, 16)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=settings["width"])
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=4), name="softmax")
    fitted = mx.mod.Module(net, compression_params=compress() if settings["compressed"] else None)
    steps = iter(range(10**9))
    fitted.fit(
        data,
        kvstore=kv,
        optimizer=settings["optimizer"] or "sgd",
        optimizer_params={"learning_rate": 2**-10},
        batch_end_callback=lambda _: running(next(steps)),
        num_epoch=max(1, settings["steps"] // 4),
    )
    return [value for _, value in sorted(fitted.get_params()[0].items())]


try:
    mx.random.seed(1)
    kv = mx.kv.create(settings["store"])
    held = globals()[settings["program"]]()
    time.sleep(settings["late"] * kv.rank)
    print("done", digest(held), flush=True)
except mx.MXNetError as error:
    print("failed:", " ".join(str(error).split()), flush=True)
    if settings["after"] == "raise":
        raise
    if settings["after"] == "exit":
        sys.exit(3)
