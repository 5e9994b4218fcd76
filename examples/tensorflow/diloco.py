"""Trains a small Keras network on scikit-learn's digits, and synchronizes weights every 30 steps.

    tools/launch.py -n 4 --topo colocated python examples/tensorflow/diloco.py

Between two synchronizations each worker trains alone (DiLoCo).
"""

from __future__ import annotations

import hipress.tensorflow as hvd  # first: servers serve here, and need no TensorFlow

# isort: split
import argparse
import hashlib

import keras
from digits import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compression", default="maxmin", metavar="TYPE", help="none, maxmin, ...")
    parser.add_argument("--sync-every", type=int, default=30, help="steps on one's own")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=16, help="images of each worker")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed + hvd.rank())
    (images, labels), test = load()
    share = len(images) // hvd.size()  # equal shares, so that all make the same steps
    mine = slice(hvd.rank() * share, (hvd.rank() + 1) * share)
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(args.learning_rate), loss, metrics=["accuracy"])
    diloco = hvd.DiLoCo(model, args.sync_every, compression=args.compression)
    model.fit(
        images[mine], labels[mine], args.batch_size, args.epochs, verbose=0, callbacks=[diloco]
    )
    diloco.synchronize()  # for the steps since the last synchronization
    right = model.evaluate(*test, verbose=0)[1]
    weights = hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.trainable_variables))
    pushed = hvd.stats().get("pushed_bytes", 0)
    print(
        f"worker {hvd.rank()}: weights {weights.hexdigest()[:16]}, accuracy {right:.4f}, "
        f"{pushed} bytes pushed"
    )


if __name__ == "__main__":
    main()
