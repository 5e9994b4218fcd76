"""Trains a small network on scikit-learn's digits: 1,797 real scans of 8x8 pixels.

torchrun --nproc-per-node=4 examples/torch/digits.py --compression onebit
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from models import small_cnn
from torch.nn import functional as F

import common

TEST_IMAGES = 517


def main() -> None:
    parser = common.parser(__doc__.splitlines()[0], steps=300, learning_rate=0.02)
    parser.set_defaults(min_size=1024)
    args = parser.parse_args()
    common.start(args)
    (images, labels), test = load()
    model, compression = common.distribute(small_cnn(), args)
    optimizer = common.optimizer_of(model, args, compression)
    report = common.Report(every=50)
    generator = torch.Generator().manual_seed(args.seed)
    mine = iter(())
    for step in range(args.steps):
        rows = next(mine, None)
        if rows is None or len(rows) < args.batch_size:
            mine = iter(common.shard(len(images), generator).split(args.batch_size))
            rows = next(mine)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        report(step, loss)
    with torch.no_grad():
        right = (model.module(test[0]).argmax(1) == test[1]).float().mean().item()
    report(args.steps, loss, test_accuracy=round(right, 4))
    dist.destroy_process_group()


def load():
    """Return ((images, labels) for training, the same for testing)."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = torch.randperm(len(digits.images), generator=torch.Generator().manual_seed(20170))
    images = ((torch.from_numpy(digits.images) - 4.9) / 6.0).float()[order, None]
    labels = torch.from_numpy(digits.target)[order].long()
    train, test = slice(TEST_IMAGES, None), slice(TEST_IMAGES)
    return (images[train], labels[train]), (images[test], labels[test])


if __name__ == "__main__":
    main()
