"""One rank of feedback.py, which trains a model by one method of "auto" and reports figures."""

from __future__ import annotations

import math
import os
import statistics
import sys
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from benchmarks.common.timing import options, report
from benchmarks.training import node
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text

import hipress.torch
from hipress.autotune import controller as controllers
from hipress.autotune import methods
from hipress.autotune.frontend import TuningFrontend
from hipress.autotune.measurement import Measurement


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    args = options()
    figures = watch(args.method_name)
    loss = lstm(args) if args.model == "lstm" else vgg(args)
    if dist.get_rank() == 0:
        report(loss=loss, figures=figures)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def watch(method_name: str) -> list[dict]:
    """Make auto choose this method and keep it; return the figures, which are added later."""
    onebit = methods.Method("onebit", "onebit", feedback=True)
    methods.METHODS = (*methods.METHODS, onebit)
    figures: list[dict] = []
    decide = controllers.TuningController._decide

    def noted(self: controllers.TuningController, found: dict[str, float], step: int) -> list:
        figures.append({"step": step, **found})
        return decide(self, found, step)

    def measured(of: TuningFrontend, candidates: list[methods.Method]) -> list[Measurement]:
        return [Measurement(1.0 if m.name == method_name else 9.0, of.elements) for m in candidates]

    controllers.TuningController._decide = noted
    TuningFrontend.measure = measured
    controllers.MAX_SHARE = controllers.MAX_MEAN_ERROR = math.inf
    return figures


def lstm(args: SimpleNamespace) -> float:
    """Return the loss on held-out text."""
    sizes = ["--steps", args.steps, "--width", 32, "--min-size", args.min_size, "--batch-size", 4]
    compression = [] if args.method_name == "none" else ["--compression", "auto"]
    given = ["--model", "lstm", "--seed", args.seed, *compression, *sizes]
    found: dict[str, float] = {}
    text.train(text.arguments([*map(str, given)]), lambda step, loss, **more: found.update(more))
    return found["test_loss"]


def vgg(args: SimpleNamespace) -> float:
    """Return the mean loss of all ranks' last 20 steps, with a decreasing learning rate."""
    torch.manual_seed(args.seed)
    of = SimpleNamespace(model="vgg", batch_size=1)
    model, loss_of, optimizer = node.workload(of, 1000 * args.seed + dist.get_rank())
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if args.method_name != "none":
        hipress.torch.compress(ddp, optimizer=optimizer)
    rate, losses = optimizer.param_groups[0]["lr"], []
    for step in range(args.steps):
        falling = 0.1 + 0.45 * (1 + math.cos(math.pi * step / args.steps))
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 20) * falling
        optimizer.zero_grad()
        loss = loss_of(ddp)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    mean = torch.tensor(statistics.fmean(losses[-20:]))
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


if __name__ == "__main__":
    main()
