"""Trains a small Keras network on scikit-learn's digits while single workers may fail.

    hipress launch --elastic -n 4 --min-workers 2 python examples/tensorflow/elastic.py

Kill any of the processes: the remaining ones repeat the step, and the restarted worker joins them.
With --sync-every 30 they synchronize weights every 30 steps (DiLoCo), and repeat no step.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import keras
import numpy as np
from digits import load

import hipress.tensorflow.elastic as elastic

BATCH = 240
"""Images of a step, of all workers together: 2, 3, 4, 5 or 6 workers get equal parts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compression", default="onebit")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--check-every", type=int, default=20, help="steps between comparisons")
    parser.add_argument("--sync-every", type=int, help="synchronize weights every so many steps")
    parser.add_argument("--sync-delay", type=int, default=0, help="steps that weights may travel")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    (images, labels), test = load()
    model = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)]
    )
    rate = keras.optimizers.schedules.CosineDecay(args.learning_rate, args.steps)
    rounds = {}
    if args.sync_every:
        outer = keras.optimizers.SGD(0.7, momentum=0.9, nesterov=True)
        rounds = {
            "sync_every": args.sync_every,
            "outer_optimizer": outer,
            "fragment_sync_delay": args.sync_delay,
        }
    state = elastic.State(
        model,
        keras.optimizers.SGD(rate, momentum=0.9),
        args.compression,
        check_every=args.check_every,
        **rounds,
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(state.optimizer, loss, metrics=["accuracy"], jit_compile=False)

    @elastic.run
    def train(state: elastic.State) -> None:
        def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for step in range(state.step, args.steps):
                # The seed depends on the step alone, so that a repeated step has the same images.
                random = np.random.default_rng([args.seed, step])
                mine = random.integers(len(images), size=BATCH)[state.rank :: state.size]
                yield images[mine], labels[mine]

        left = args.steps - state.step
        if left:
            model.fit(batches(), steps_per_epoch=left, verbose=0, callbacks=[state.callback()])

    train(state)
    if state.rank == 0:
        right = model.evaluate(*test, verbose=0)[1]
        print(f"after {state.step} steps: {right:.4f} of the test images are right", flush=True)


if __name__ == "__main__":
    main()
