"""One rank of convergence.py, which trains a model of examples/torch/text.py repeatedly."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for run in options().runs:
        curve: list[dict] = []

        def note(step: int, loss: torch.Tensor, curve: list = curve, **more: float) -> None:
            if step % 10 == 0 or more:
                mean = loss.detach() / dist.get_world_size()
                dist.all_reduce(mean)
                curve.append({"step": step, "loss": mean.item(), **more})

        text.train(text.arguments(run["arguments"]), note)
        if dist.get_rank() == 0:
            report(method=run["method"], seed=run["seed"], curve=curve)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


if __name__ == "__main__":
    main()
