"""Trains a small network on scikit-learn's digits while single workers may fail.

    hipress launch --elastic -n 4 --min-workers 2 python examples/mxnet/elastic.py

Kill any of the processes: the remaining ones repeat the step, and the restarted worker joins them.
With --sync-every 30 they synchronize weights every 30 steps (DiLoCo), and repeat no step.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mxnet_hipress.elastic as elastic  # isort: skip (before mxnet)

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

sys.path.append(str(Path(__file__).parents[1] / "digits"))
from train import accuracy, build_network, load_digits

BATCH = 240
"""Images of a step, of all workers together: 2, 3, 4, 5 or 6 workers get equal parts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="onebit", help="compression: none, 2bit, onebit, ...")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--check-every", type=int, default=20, help="steps between comparisons")
    parser.add_argument("--sync-every", type=int, help="synchronize weights every so many steps")
    parser.add_argument("--sync-delay", type=int, default=0, help="steps that weights may travel")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    np.random.seed(args.seed)  # MXNet's initializers draw from both
    mx.random.seed(args.seed)
    (images, labels), (test_images, test_labels) = load_digits(0, 1)
    net = build_network()
    net.initialize(mx.init.MSRAPrelu(slope=0))
    net.hybridize(static_alloc=True)
    schedule = mx.lr_scheduler.CosineScheduler(args.steps, args.learning_rate)
    sgd = mx.optimizer.SGD(momentum=0.9, learning_rate=args.learning_rate, lr_scheduler=schedule)
    trainer = gluon.Trainer(net.collect_params(), sgd, kvstore=None)
    compression = {"type": args.type, "min_size": 1024}
    rounds = {}
    if args.sync_every:
        rounds = {
            "sync_every": args.sync_every,
            "outer_optimizer": "nag",
            "fragment_sync_delay": args.sync_delay,
        }
    state = elastic.State(net, trainer, compression, check_every=args.check_every, **rounds)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    @elastic.run
    def train(state: elastic.State) -> None:
        while state.step < args.steps:
            # The seed depends on the step alone, so that a repeated step has the same images.
            random = np.random.RandomState([args.seed, state.step])
            mine = random.randint(len(images), size=BATCH)[state.rank :: state.size]
            with autograd.record():
                loss = loss_of(net(mx.nd.array(images[mine])), mx.nd.array(labels[mine]))
            loss.backward()
            # Gradients are summed over all workers; in inner steps they are this worker's own.
            state.trainer.step(len(mine) if args.sync_every else BATCH)
            if state.rank == 0 and (state.step + 1) % 50 == 0:
                print(
                    f"step {state.step + 1}: {state.size} workers, loss "
                    f"{loss.mean().asscalar():.4f}",
                    flush=True,
                )
            state.commit(loss=float(loss.mean().asscalar()))

    train(state)
    if state.rank == 0:
        right = accuracy(net, mx.nd.array(test_images), mx.nd.array(test_labels))
        print(f"after {state.step} steps: {right:.4f} of the test images are right", flush=True)


if __name__ == "__main__":
    main()
