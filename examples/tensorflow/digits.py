"""Trains a small Keras network on scikit-learn's digits: 1,797 real scans of 8x8 pixels.

    tools/launch.py -n 2 -s 1 python examples/tensorflow/digits.py --compression onebit

Each worker trains on its own share; worker 0 writes one JSON line per epoch. Without the launcher
it trains alone, on all images.
"""

from __future__ import annotations

import hipress.tensorflow as hvd  # first: servers serve here, and need no TensorFlow

# isort: split
import argparse
import hashlib
import json

import keras
import numpy as np

TEST_IMAGES = 517  # leaves 1,280 to train on
SPLIT_SEED = 20170


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compression", default="none", metavar="TYPE", help="onebit, dgc, ...")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the compression, such as ratio=0.01; may be repeated",
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="images of all workers together")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed + hvd.rank())
    (images, labels), test = load()
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)]
    )
    params = dict(text.split("=", 1) for text in args.param)
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(args.learning_rate), {"type": args.compression, **params}
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    hvd.broadcast_variables(model.variables)
    mine = slice(hvd.rank(), None, hvd.size())  # equal shares, so that all make the same steps
    for epoch in range(args.epochs):
        order = np.random.default_rng([args.seed, epoch]).permutation(len(images))[mine]
        history = model.fit(
            images[order], labels[order], args.batch_size // hvd.size(), shuffle=False, verbose=0
        )
        if hvd.rank() == 0:
            accuracy = model.evaluate(*test, verbose=0)[1]
            line = {"epoch": epoch + 1, "loss": round(history.history["loss"][0], 4)}
            line["test_accuracy"] = round(accuracy, 4)
            for name in ("pushed_bytes", "pushed_raw_bytes"):
                line[name] = hvd.stats().get(name, 0)
            print(json.dumps(line))
    weights = b"".join(variable.numpy().tobytes() for variable in model.variables)
    print(f"worker {hvd.rank()}: weights {hashlib.sha256(weights).hexdigest()[:16]}")


def load():
    """Return ((images, labels) for training, the same for testing)."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.images))
    images = ((digits.images - 4.9) / 6.0).astype(np.float32).reshape(-1, 64)[order]
    labels = digits.target[order]
    train, test = slice(TEST_IMAGES, None), slice(TEST_IMAGES)
    return (images[train], labels[train]), (images[test], labels[test])


if __name__ == "__main__":
    main()
