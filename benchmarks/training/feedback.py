"""Figures of error feedback in training that keeps its loss, which bound type "auto".

The benchmark trains the LSTM of examples/torch/text.py and the VGG-like network of steps.py with
SGD and unmodified momentum, on this machine's loopback: uncompressed, by each method of type "auto"
with error feedback, and by onebit, which "auto" does not use. It prints the final loss (on held-out
text; of the last 20 steps) and the median and the largest of the figures of
``hipress.autotune.quality_guard``.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Output, Priority, Quick
from benchmarks.common.results import Record

METHODS = "none, maxminef bits=4, maxminef bits=3, maxminef bits=2, onebit, powersgd rank=4"


def main(
    models: str = "lstm vgg",
    methods: str = METHODS,
    steps: int = 2000,
    vgg_steps: int = 120,
    ranks: int = 2,
    min_size: int = 1024,
    seed: int = 0,
    priority: Priority = False,
    output: Output = "feedback",
    join: Annotated[list[Path], typer.Option(help="Show runs written earlier.")] = [],  # noqa: B006
    quick: Quick = False,
) -> None:
    if quick:
        models, methods, steps = "lstm", "none, onebit", 60
    record = Record(output, locals())
    record["runs"] = runs = [run for file in join for run in json.loads(file.read_text())["runs"]]
    for model in [] if join else models.split():
        for method in methods.split(", "):
            command = jobs.node(
                "training.feedback_node",
                model=model,
                method_name=method,
                min_size=min_size,
                seed=seed,
                steps=vgg_steps if model == "vgg" else steps,
            )
            (found,) = jobs.reports(jobs.torch_job(command, ranks, None, 900, priority))
            runs.append({"model": model, "seed": seed, "way": method, **found})
    show(record, runs)
    record.save()


def show(record: Record, runs: list[dict]) -> None:
    """Add a table that compares each run with the uncompressed one of its model and seed."""
    plain = {(run["model"], run["seed"]): run["loss"] for run in runs if run["way"] == "none"}
    rows = []
    for run in runs:
        where = run["model"], run["seed"]
        gap = 100 * (run["loss"] / plain[where] - 1) if where in plain else 0.0
        # The VGG-like network memorizes its few images: its loss is near 0.
        against = "" if run["way"] == "none" or run["model"] == "vgg" else f"{gap:+.1f}%"
        cells = []
        for name in ("share", "error"):
            values = [each[name] for each in run["figures"] if name in each]
            cells.append(f"{statistics.median(values):.2f} ({max(values):.2f})" if values else "")
        about = f"{run['model']}, seed {run['seed']}: {run['way']}"
        rows.append([about, f"{run['loss']:.4f}", against, *cells])
    heads = ["", "loss", "against none", "residuals over gradient: median (largest)", "error"]
    record.table(heads, rows, "error feedback's figures in training")
