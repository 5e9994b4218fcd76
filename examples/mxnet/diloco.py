"""Trains a small network on scikit-learn's digits, and synchronizes weights every 30 steps.

    tools/launch.py -n 4 --topo colocated python examples/mxnet/diloco.py --type maxmin

Between two synchronizations each worker trains alone (DiLoCo).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mxnet_hipress  # isort: skip (before mxnet; servers serve here)

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

sys.path.append(str(Path(__file__).parents[1] / "digits"))
from train import accuracy, build_network, digest, load_digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--type", default="maxmin", help="compression: none, maxmin, ...")
    parser.add_argument("--sync-every", type=int, default=30, help="steps on one's own")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32, help="images of each worker")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    kv = mx.kv.create("dist_sync_hipress")
    np.random.seed(args.seed)  # MXNet's initializers draw from both
    mx.random.seed(args.seed)
    (images, labels), (test_images, test_labels) = load_digits(kv.rank, kv.num_workers)
    net = build_network()
    net.initialize(mx.init.MSRAPrelu(slope=0))
    net.hybridize(static_alloc=True)
    trainer = mxnet_hipress.DiLoCoTrainer(
        net.collect_params(),
        "adam",
        {"learning_rate": args.learning_rate},
        args.sync_every,
        compression_params={"type": args.type},
        kvstore=kv,
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    shuffle = np.random.RandomState([args.seed, kv.rank])
    for step in range(1, args.steps + 1):
        mine = shuffle.randint(len(images), size=args.batch_size)
        with autograd.record():
            loss = loss_of(net(mx.nd.array(images[mine])), mx.nd.array(labels[mine]))
        loss.backward()
        trainer.step(args.batch_size)
        if kv.rank == 0 and step % 100 == 0:
            print(f"step {step}: loss {loss.mean().asscalar():.4f}", flush=True)
    trainer.synchronize()  # for the steps since the last synchronization
    right = accuracy(net, mx.nd.array(test_images), mx.nd.array(test_labels))
    pushed = trainer.store.stats()["pushed_bytes"]
    print(f"worker {kv.rank}: weights {digest(net)}, accuracy {right:.4f}, {pushed} bytes pushed")


if __name__ == "__main__":
    main()
