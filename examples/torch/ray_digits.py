"""The digits example as a Ray Train job: two lines more than without compression.

    python examples/torch/ray_digits.py

Needs the package ray (pip install "ray[train]"). A worker that fails is restarted with all others
from the last checkpoint.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import ChainMap
from pathlib import Path

import ray.train
import torch
from digits import load
from models import small_cnn
from ray.train.torch import TorchTrainer, prepare_model
from torch.nn import functional as F

import hipress.torch
from hipress.torch.ray import HiPressConfig

BATCH = 64


def train(settings: dict) -> None:
    """Train on one worker. All workers run this."""
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    torch.manual_seed(0)
    (images, labels), test = load()
    model = prepare_model(small_cnn())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    compression = None
    if size > 1:  # alone, there is no DDP and nothing to compress
        compression = hipress.torch.compress(model, settings["compression"], min_size=1024)
    start = 0
    if ray.train.get_checkpoint() is not None:
        with ray.train.get_checkpoint().as_directory() as folder:
            saved = [
                torch.load(path, weights_only=True)
                for path in sorted(Path(folder).glob("rank-*.pt"))
            ]
        start = saved[0]["step"]
        model.load_state_dict(saved[0]["model"])
        optimizer.load_state_dict(saved[0]["optimizer"])
        if compression is not None:
            compression.load_state_dict(ChainMap(*(each["compression"] for each in saved)))
    for step in range(start, settings["steps"]):
        generator = torch.Generator().manual_seed(step)
        batch = torch.randint(len(images), (BATCH,), generator=generator)[rank::size]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        if (step + 1) % settings["save_every"] == 0:
            state = {
                "step": step + 1,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "compression": None if compression is None else compression.state_dict(),
            }
            with torch.no_grad():
                right = (model(test[0]).argmax(1) == test[1]).float().mean().item()
            with tempfile.TemporaryDirectory() as folder:
                torch.save(state, Path(folder) / f"rank-{rank:03}.pt")
                # Ray joins the files of all ranks in one checkpoint.
                checkpoint = ray.train.Checkpoint.from_directory(folder)
                ray.train.report({"step": step + 1, "accuracy": right}, checkpoint=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--compression", default="onebit")
    args = parser.parse_args()
    trainer = TorchTrainer(
        train,
        train_loop_config={"steps": args.steps, "compression": args.compression, "save_every": 50},
        torch_config=HiPressConfig(),
        scaling_config=ray.train.ScalingConfig(num_workers=args.workers),
        run_config=ray.train.RunConfig(failure_config=ray.train.FailureConfig(max_failures=3)),
    )
    result = trainer.fit()
    print(f"step {result.metrics['step']}: test accuracy {result.metrics['accuracy']:.3f}")


if __name__ == "__main__":
    main()
