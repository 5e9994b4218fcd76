"""Rounding error of maxmin relative to gradients of the text examples, which bounds "auto".

The benchmark trains the models of convergence.py uncompressed, in one process. It prints the norm
of the error over that of the gradient, as ``hipress.autotune.quality_guard`` computes it, for the
worst parameter: the median and the largest over some steps.
"""

from __future__ import annotations

import statistics
import sys
from typing import Annotated

import typer

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

BITS = (8, 6, 5, 4)


def main(
    models: str = "lstm gpt",
    steps: int = 1000,
    every: Annotated[int, typer.Option(help="Steps of which one is looked at.")] = 10,
    width: int = 32,
    layers: int = 2,
    min_size: int = 1024,
    batch_size: int = 4,
    seed: int = 0,
    output: Output = "rounding",
    quick: Quick = False,
) -> None:
    if quick:
        models, steps = "lstm", 20
    record = Record(output, locals())
    record["spreads"] = {}
    rows = []
    for model in models.split():
        spreads = record["spreads"][model] = spreads_of(
            model, steps, every, width, layers, min_size, batch_size, seed
        )
        middle, largest = statistics.median(spreads), max(spreads)
        cells = [f"{middle / (2**b - 1):.3f} ({largest / (2**b - 1):.3f})" for b in BITS]
        rows.append([model, *cells])
    heads = ["median (largest)", *(f"{bits} bits" for bits in BITS)]
    record.table(heads, rows, f"rounding error over the gradient's norm, {steps} steps")
    record.save()


def spreads_of(
    name: str,
    steps: int,
    every: int,
    width: int,
    layers: int,
    min_size: int,
    batch_size: int,
    seed: int,
) -> list[float]:
    """Return the error with one bit in some steps of training."""
    import text
    import torch

    from benchmarks.training.convergence import USUAL
    from hipress.autotune.quality_guard import RoundingGuard, squares

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    data, guard, found = text.Text(), RoundingGuard(), []
    model = text.make(name, len(data.characters), width, layers)
    optimizer, rate = USUAL[name]
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    optimizer = make(model.parameters(), lr=float(rate))
    generator = torch.Generator().manual_seed(1000 * seed)
    for step in range(steps):
        optimizer.zero_grad()
        text.loss_of(model, data.batch(batch_size, generator)).backward()
        if step % every == 0:
            for parameter in model.parameters():
                if parameter.numel() >= min_size:
                    guard.add(squares(parameter.grad.flatten().numpy()))
            found.append(guard.spread())
        optimizer.step()
    return found
