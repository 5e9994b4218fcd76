"""Trains a convolutional network on handwritten digits, data-parallel over a HiPress kvstore.

Run it under the launcher, which starts this same script as scheduler, servers and workers:

    tools/launch.py -n 4 -s 2 python examples/digits/train.py --type 2bit

The data are scikit-learn's digits: 1,797 real scans of 8x8 pixels, shipped with the package. Every
worker trains on its own shard; worker 0 tests after each epoch and writes one JSON line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

TEST_IMAGES = 517  # leaves 1,280 to train on: 320 for each of 4 workers
SPLIT_SEED = 20170


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="none", help="compression: none, 2bit, 1bit, onebit, ...")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the compression, such as threshold=0.5; may be repeated",
    )
    parser.add_argument(
        "--min-size", type=int, default=1024, help="smaller gradients go uncompressed (elements)"
    )
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=16, help="images per worker and step")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--dtype",
        default="float32",
        choices=["float32", "float16"],
        help="of the gradients on the wire; float16 goes without compression, and by --push-pull",
    )
    parser.add_argument(
        "--push-pull",
        action="store_true",
        help="sum gradients by kv.push and kv.pull here, not in the Trainer: MXNet's own kvstore "
        "refuses compression in a Trainer",
    )
    parser.add_argument(
        "--hidden", type=int, default=116, help="units of the dense layer (116: 161,974 weights)"
    )
    parser.add_argument("--kvstore", default="dist_sync_hipress")
    parser.add_argument(
        "--update-on-kvstore",
        action="store_true",
        help="the servers run the optimizer and send weights, which are not compressed",
    )
    parser.add_argument("--output", type=Path, help="file for the JSON lines; default: print them")
    parser.add_argument("--target", type=float, help="stop at this test accuracy, 0 to 1")
    args = parser.parse_args()
    if args.dtype == "float16" and args.type != "none":
        parser.error("--dtype float16 goes with --type none only")
    if args.update_on_kvstore and (args.push_pull or args.dtype == "float16"):
        parser.error("--update-on-kvstore needs the Trainer: no --push-pull, no --dtype float16")
    return args


def load_digits(rank: int, num_workers: int):
    """Return (images, labels) of this worker's shard and of the whole test set, in a fixed split.

    Images are float32 of shape (n, 1, 8, 8), standardized, labels float32 of shape (n,). Shards are
    disjoint and of equal length, so all workers make the same number of steps.
    """
    import numpy as np
    from sklearn.datasets import load_digits as load

    digits = load()
    order = np.random.RandomState(SPLIT_SEED).permutation(len(digits.images))
    images = ((digits.images[order] - 4.9) / 6.0).astype(np.float32)[:, None]  # mean 0, variance 1
    labels = digits.target[order].astype(np.float32)
    test = slice(0, TEST_IMAGES)
    shard = (len(order) - TEST_IMAGES) // num_workers
    mine = slice(TEST_IMAGES + rank * shard, TEST_IMAGES + (rank + 1) * shard)
    return (images[mine], labels[mine]), (images[test], labels[test])


def build_network(hidden: int = 116):
    """Return a network of three convolutions and two dense layers.

    It has 161,974 weights with 116 hidden units.
    """
    from mxnet.gluon import nn

    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, 3, padding=1, activation="relu", in_channels=1),
        nn.Conv2D(48, 3, padding=1, activation="relu", in_channels=32),
        nn.MaxPool2D(2),
        nn.Conv2D(64, 3, padding=1, activation="relu", in_channels=48),
        nn.Flatten(),
        nn.Dense(hidden, activation="relu", in_units=1024),
        nn.Dense(10, in_units=hidden),
    )
    return net


def optimizer_params(args: argparse.Namespace, steps: int) -> dict[str, Any]:
    """Return SGD's parameters: a linear warm-up over 5% of the steps, then cosine decay to 2%.

    The schedule belongs to the optimizer, so it also works on the servers.
    """
    from mxnet.lr_scheduler import CosineScheduler

    rate = args.learning_rate
    schedule = CosineScheduler(
        steps,
        base_lr=rate,
        final_lr=0.02 * rate,
        warmup_steps=max(1, steps // 20),
        warmup_begin_lr=0.2 * rate,
    )
    return {"learning_rate": rate, "lr_scheduler": schedule, "momentum": args.momentum}


def compression_params(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return Trainer's compression_params, or None for an uncompressed run."""
    if args.type == "none":
        return None
    params: dict[str, Any] = {"type": args.type}
    if "hipress" in args.kvstore:
        params["min_size"] = args.min_size
    for param in args.param:
        name, _, value = param.partition("=")
        params[name] = value
    return params


class Exchange:
    """Sum of gradients over all workers by kv.push and kv.pull, as float32 or as float16 arrays."""

    def __init__(self, kv, parameters, dtype: str) -> None:
        self._kv, self._dtype = kv, dtype
        self._gradients = [parameter.grad() for parameter in parameters]
        self._sums = [gradient.astype(dtype) for gradient in self._gradients]
        self._names = [f"gradient{index}" for index in range(len(self._sums))]
        kv.init(self._names, self._sums)

    def __call__(self) -> None:
        """Replace this worker's gradients by the sums over all workers."""
        triples = list(enumerate(zip(self._names, self._gradients, self._sums)))
        for index, (name, gradient, total) in reversed(triples):
            self._kv.push(name, gradient.astype(self._dtype, copy=False), priority=-index)
            self._kv.pull(name, out=total, priority=-index)
        for _, (_, gradient, total) in triples:
            total.astype("float32", copy=False).copyto(gradient)


def accuracy(net, images, labels) -> float:
    """Return the fraction of `images` that the network classifies correctly."""
    return float((net(images).asnumpy().argmax(axis=1) == labels.asnumpy()).mean())


def digest(net) -> str:
    """Return a hash of all weights: equal on two workers only if they are bit-identical."""
    state = hashlib.sha256()
    for _, value in sorted(net.collect_params().items()):
        state.update(value.data().asnumpy().tobytes())
    return state.hexdigest()[:16]


def main() -> None:
    args = arguments()
    if "hipress" in args.kvstore:
        import mxnet_hipress  # noqa: F401  (registers the kvstore; servers stay inside)
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon

    kv = mx.kv.create(args.kvstore)
    (images, labels), (test_images, test_labels) = load_digits(kv.rank, kv.num_workers)
    test_images, test_labels = mx.nd.array(test_images), mx.nd.array(test_labels)
    images, labels = mx.nd.array(images), mx.nd.array(labels)

    np.random.seed(args.seed)  # MXNet's initializers draw from both
    mx.random.seed(args.seed)  # the same weights on every worker
    net = build_network(args.hidden)
    net.initialize(mx.init.MSRAPrelu(slope=0))
    net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = len(images) // args.batch_size
    by_hand = args.push_pull or args.dtype == "float16"
    compression = compression_params(args)
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        optimizer_params(args, args.epochs * batches),
        kvstore=None if by_hand else kv,
        compression_params=None if by_hand else compression,
        update_on_kvstore=args.update_on_kvstore and not by_hand,
    )
    net(images[: args.batch_size]).wait_to_read()  # the first use's set-up is no training time
    parameters = list(net.collect_params().values())
    if by_hand and compression:
        kv.set_gradient_compression(compression)
    exchange = Exchange(kv, parameters, args.dtype) if by_hand else None
    shuffle = np.random.RandomState([args.seed, kv.rank])
    lines = args.output.open("w") if args.output and kv.rank == 0 else sys.stdout

    def write(record: dict[str, Any]) -> None:
        if kv.rank == 0:
            print(json.dumps(record), file=lines, flush=True)

    def wait_for_all() -> None:
        (kv.barrier if hasattr(kv, "barrier") else kv._barrier)()

    seconds, step = 0.0, 0
    for epoch in range(1, args.epochs + 1):
        order = mx.nd.array(shuffle.permutation(len(images)), dtype="int32")
        wait_for_all()
        start = time.perf_counter()
        for batch in range(batches):
            chosen = order[batch * args.batch_size : (batch + 1) * args.batch_size]
            with autograd.record():
                loss = loss_of(net(images.take(chosen)), labels.take(chosen))
            loss.backward()
            if exchange:
                exchange()
            trainer.step(args.batch_size * kv.num_workers)
            step += 1
        mx.nd.waitall()
        wait_for_all()
        seconds += time.perf_counter() - start
        reached = accuracy(net, test_images, test_labels)
        write(
            {
                "epoch": epoch,
                "epochs": args.epochs,
                "accuracy": reached,
                "seconds": round(seconds, 4),
                "step": step,
                **(kv.stats() if hasattr(kv, "stats") else {}),
            }
        )
        # Every worker tests, so that all of them see the same accuracy and stop together.
        if args.target is not None and reached >= args.target:
            break
    final = {"rank": kv.rank, "weights": digest(net)}
    if args.output:
        Path(f"{args.output}.rank{kv.rank}").write_text(json.dumps(final) + "\n")
    else:
        print(json.dumps(final), flush=True)
    wait_for_all()


if __name__ == "__main__":
    main()
