"""One worker of each.py under MXNet: steps of a Gluon Trainer, by one method.

A method is "stock" (MXNet's own store), "none", "TYPE:NAME=VALUE,..." or "auto" (ours), or "alone":
no store, so that nothing is sent. VGG and ResNet train with SGD, the LSTM with Adam; the Trainer
decides where. With "auto" the timed steps begin when it has settled.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from benchmarks.common.timing import options, report
from benchmarks.training.node import ALONE, AUTO, BATCHES, chosen

CLASSES, CHARACTERS, LENGTH = 10, 96, 16


def main() -> None:
    args = options(steps=10, warmup=3)
    ours = args.method not in ("stock", ALONE)
    if ours:
        import mxnet_hipress  # noqa: F401
    import mxnet as mx

    kv = None if args.method == ALONE else mx.kv.create("dist_sync" + "_hipress" * ours)
    mx.random.seed(0 if kv is None else kv.rank)  # worker 0's weights are used by all
    net, shape, optimizer = network(mx, args.model)
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    batches = [batch(mx, args, shape) for _ in range(BATCHES)]
    net(batches[0][0])  # gives all parameters their shapes
    mx.nd.waitall()  # stock's store would pull arrays that are still being read
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        *optimizer,
        kvstore=kv,
        compression_params=compression(args.method) if ours else None,
    )
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def barrier() -> None:
        if kv is not None:
            kv._barrier()

    def step(number: int) -> None:
        x, y = batches[number % BATCHES]
        with mx.autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(1)
        mx.nd.waitall()

    number = 0
    while number < args.warmup or (args.method == AUTO and not kv.is_settled):
        step(number)
        number += 1
    seconds = []
    for number in range(args.steps):
        barrier()
        start = time.perf_counter()
        step(number)
        seconds.append(time.perf_counter() - start)
    report(seconds=seconds, **(chosen(kv.explain()) if args.method == AUTO else {}))
    barrier()


def compression(method: str) -> dict[str, object]:
    """Return a method as compression parameters."""
    kind, _, rest = method.partition(":")
    return {"type": kind} | dict(item.split("=") for item in filter(None, rest.split(",")))


def network(mx, model: str):
    """Return (network, shape of a sample, (optimizer's name, its parameters))."""
    nn, sgd = mx.gluon.nn, ("sgd", {"learning_rate": 0.001, "momentum": 0.9})
    if model == "resnet":
        return mx.gluon.model_zoo.vision.resnet50_v1(classes=CLASSES), (3, 64, 64), sgd
    net = nn.HybridSequential()
    if model == "lstm":
        net.add(nn.Embedding(CHARACTERS, 512), mx.gluon.rnn.LSTM(1024, 2, "NTC"))
        net.add(nn.Dense(CHARACTERS, flatten=False))
        return net, (LENGTH,), ("adam", {"learning_rate": 0.0005})
    for channels, count in ((16, 2), (32, 2), (64, 4), (128, 4), (128, 4)):
        for _ in range(count):
            net.add(nn.Conv2D(channels, 3, padding=1, activation="relu"))
        net.add(nn.MaxPool2D())
    net.add(nn.Dense(4096, activation="relu"), nn.Dense(4096, activation="relu"))
    net.add(nn.Dense(CLASSES))
    return net, (3, 32, 32), sgd


def batch(mx, args: SimpleNamespace, shape: tuple[int, ...]):
    """Return one sample and its class; for a text each character's next one."""
    if args.model == "lstm":
        text = mx.nd.random.randint(0, CHARACTERS, (1, shape[0] + 1)).astype("float32")
        return text[:, :-1], text[:, 1:]
    return mx.nd.random.normal(shape=(1, *shape)), mx.nd.random.randint(0, CLASSES, (1,))


if __name__ == "__main__":
    main()
