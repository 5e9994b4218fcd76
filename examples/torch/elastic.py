"""Trains a small network on scikit-learn's digits while single workers may fail.

    hipress launch --elastic -n 4 --min-workers 2 python examples/torch/elastic.py

Kill any of the processes: the remaining ones repeat the step, and the restarted worker joins them.
With --sync-every 30 they synchronize weights every 30 steps (DiLoCo), and repeat no step.
"""

from __future__ import annotations

import argparse

import torch
from digits import load
from models import small_cnn
from torch.nn import functional as F

import hipress.torch.elastic as elastic

BATCH = 240
"""Images of a step, of all workers together: 2, 3, 4, 5 or 6 workers get equal parts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compression", default="onebit")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--check-every", type=int, default=20, help="steps between comparisons")
    parser.add_argument("--sync-every", type=int, help="synchronize weights every so many steps")
    parser.add_argument("--sync-delay", type=int, default=0, help="steps that weights may travel")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    (images, labels), test = load()
    model = small_cnn()
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    rounds = {}
    if args.sync_every:
        outer = torch.optim.SGD(model.parameters(), 0.7, momentum=0.9, nesterov=True)
        rounds = {
            "sync_every": args.sync_every,
            "outer_optimizer": outer,
            "fragment_sync_delay": args.sync_delay,
        }
    state = elastic.State(
        model,
        optimizer,
        args.compression,
        min_size=1024,
        check_every=args.check_every,
        scheduler=scheduler,
        **rounds,
    )

    @elastic.run
    def train(state: elastic.State) -> None:
        while state.step < args.steps:
            # The seed depends on the step alone, so that a repeated step has the same images.
            generator = torch.Generator().manual_seed(args.seed * 1_000_003 + state.step)
            batch = torch.randint(len(images), (BATCH,), generator=generator)
            mine = batch[state.rank :: state.size]
            state.optimizer.zero_grad()
            loss = F.cross_entropy(model(images[mine]), labels[mine])
            loss.backward()
            state.optimizer.step()
            scheduler.step()
            if state.rank == 0 and (state.step + 1) % 50 == 0:
                print(f"step {state.step + 1}: {state.size} workers, loss {loss:.4f}", flush=True)
            state.commit(loss=loss.item())

    train(state)
    if state.rank == 0:
        with torch.no_grad():
            right = (model(test[0]).argmax(1) == test[1]).float().mean().item()
        print(f"after {state.step} steps: {right:.4f} of the test images are right", flush=True)


if __name__ == "__main__":
    main()
