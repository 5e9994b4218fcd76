"""Loss of the text examples with and without compression, three seeds, as a table and a plot.

The benchmark trains the models of examples/torch/text.py on this machine's loopback, one after the
other in the same processes. It prints the loss on held-out text after the same number of steps, and
draws a PNG in output/benchmarks. Long runs may be split (--methods, --first-seed) and joined
(--join). All methods of a seed are compared with "none" of that seed, so pass the parts in the
order of seeds. --against selects another method for the comparison.
"""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Output, Priority, Quick
from benchmarks.common.results import Record

EVERY_30 = [
    "--sync-every",
    "30",
    "--compression",
    "maxmin",
    "--param",
    "bits=4",
    "--outer-momentum",
    "0.7",
]

METHODS = {
    "none": [],
    "none, frozen": [],
    "bf16": ["--compression", "bf16"],
    "maxmin 8 bits": ["--compression", "maxmin", "--param", "bits=8"],
    "maxmin 6 bits": ["--compression", "maxmin", "--param", "bits=6"],
    "maxmin 5 bits": ["--compression", "maxmin", "--param", "bits=5"],
    "maxmin 4 bits": ["--compression", "maxmin", "--param", "bits=4"],
    "maxminef 4 bits": ["--compression", "maxminef", "--param", "bits=4"],
    "maxminef 3 bits": ["--compression", "maxminef", "--param", "bits=3"],
    "ternary": ["--compression", "ternary"],
    "onebit": ["--compression", "onebit"],
    "dgc 1%": ["--compression", "dgc", "--param", "ratio=0.01"],
    "powersgd 4": ["--compression", "powersgd", "--param", "rank=4"],
    "powersgd 4, late": ["--compression", "powersgd", "--param", "rank=4"],
    "powersgd 4, frozen": ["--compression", "powersgd", "--param", "rank=4"],
    "powersgd 1": ["--compression", "powersgd", "--param", "rank=1"],
    "powersgd 1, late": ["--compression", "powersgd", "--param", "rank=1"],
    "demo": [],
    "demo, 128 of 4096": ["--param", "compression_topk=128"],
    "demo, 8 of 4096": ["--param", "compression_topk=8"],
    "muon": ["--optimizer", "muon", "--learning-rate", "0.008"],
    "bf16, muon": ["--optimizer", "muon", "--learning-rate", "0.008", "--compression", "bf16"],
    "bf16, muon, faster": [
        "--optimizer",
        "muon",
        "--learning-rate",
        "0.012",
        "--compression",
        "bf16",
    ],
    "diloco": ["--learning-rate", "0.002", "--outer-learning-rate", "1.0", *EVERY_30],
    "diloco, muon": ["--learning-rate", "0.008", "--optimizer", "muon", *EVERY_30],
    "diloco, muon, early": ["--learning-rate", "0.016", "--optimizer", "muon", *EVERY_30],
}

SHARED = ("onebit", "ternary")
"""Methods that compress the momentum of all ranks."""

USUAL = {"lstm": ("sgd", "0.3"), "gpt": ("adam", "0.004")}
"""Optimizer and learning rate of a model."""


def settings(model: str, method: str, steps: int) -> list[str]:
    """Return optimizer and warm-up of a run.

    The peer, "none", has the usual ones for the model, as powersgd has. "late" adds a warm-up to
    it, and "frozen" denominators that stay constant after it.
    """
    if "muon" in method or method.startswith("diloco"):
        return ["--early-steps", str(steps // 5)] if "early" in method else []
    if method.startswith("demo"):
        return ["--optimizer", "demo", "--learning-rate", "0.004"]
    optimizer, rate = USUAL[model]
    if method.startswith("powersgd"):
        warmup = 0.15 if "," in method else 0.0
        frozen = "frozen" in method
    elif model == "lstm":
        warmup = {"onebit": 0.15, "ternary": 0.15, "dgc 1%": 0.3}.get(method, 0.0)  # dgc's: a ramp
        frozen = False
    else:
        plain = method in ("none", "bf16") or method.startswith("maxmin ")
        warmup = 0.0 if plain else {"dgc 1%": 0.3}.get(method, 0.15)
        frozen = warmup > 0
    chosen = ["--optimizer", "frozen" if frozen else optimizer, "--learning-rate", rate]
    if (model, method) == ("gpt", "dgc 1%"):
        chosen += ["--param", "warmup=0", "--param", "momentum=0.9"]
    chosen += ["--shared-momentum", "0.9"] if method in SHARED else []
    return [*chosen, "--warmup-steps", str(int(warmup * steps))]


def main(
    models: str = "lstm gpt",
    method: Annotated[list[str], typer.Option(help="Default: all.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="How many.")] = 3,
    first_seed: int = 0,
    steps: int = 2000,
    ranks: int = 2,
    width: int = 32,
    layers: int = 2,
    min_size: int = 1024,
    batch_size: Annotated[int, typer.Option(help="Per rank.")] = 4,
    against: Annotated[str, typer.Option(help="A method.")] = "none",
    last_rate: Annotated[float, typer.Option(help="The learning rate's share at the end.")] = 0.1,
    priority: Priority = False,
    output: Output = "convergence",
    join: Annotated[list[Path], typer.Option(help="Show runs written earlier.")] = [],  # noqa: B006
    quick: Quick = False,
) -> None:
    if quick:
        models, method, seeds, steps = "lstm", ["none", "onebit"], 1, 20
    if unknown := set(method) - set(METHODS):
        raise typer.BadParameter(f"no {unknown}; there are {list(METHODS)}", param_hint="--method")
    record = Record(output, locals())
    curves: dict[str, dict[str, list]] = {}
    for file in join:
        for model, of_model in json.loads(file.read_text())["curves"].items():
            for name, runs in of_model.items():
                curves.setdefault(model, {}).setdefault(name, []).extend(runs)
    for model in [] if join else models.split():
        names = [n for n in method or METHODS if model == "gpt" or "frozen" not in n]
        sizes = [
            "--steps",
            steps,
            "--width",
            width,
            "--layers",
            layers,
            "--min-size",
            min_size,
            "--batch-size",
            batch_size,
            "--last-rate",
            last_rate,
        ]
        runs = [
            {
                "method": name,
                "seed": seed,
                "arguments": [
                    "--model",
                    model,
                    "--seed",
                    str(seed),
                    *METHODS[name],
                    *settings(model, name, steps),
                    *map(str, sizes),
                ],
            }
            for name, seed in itertools.product(names, range(first_seed, first_seed + seeds))
        ]
        command = jobs.node("training.convergence_node", runs=runs)
        found = jobs.reports(jobs.torch_job(command, ranks, None, 7200, priority))
        curves[model] = {
            name: [line["curve"] for line in found if line["method"] == name] for name in names
        }
    for model, of_model in curves.items():
        show(record, model, of_model, against)
    record["curves"] = curves
    plot(curves, record.save().with_suffix(".png"))


def show(record: Record, model: str, curves: dict[str, list], against: str) -> None:
    """Add the table of each method's loss."""
    first = next(iter(curves.values()))
    plain = [run[-1]["test_loss"] for run in curves.get(against, [])]
    cells = []
    for name, runs in curves.items():
        losses = [run[-1]["test_loss"] for run in runs]
        gaps = [100 * (a / b - 1) for a, b in zip(losses, plain, strict=False)]
        compared = [f"{statistics.fmean(gaps):+.2f}%", f"{max(gaps):+.2f}%"] if gaps else ["", ""]
        cells.append([name, f"{statistics.fmean(losses):.4f}", *compared])
    title = f"{model}, loss on held-out text after {first[0][-1]['step']} steps, {len(first)} seeds"
    heads = ["compression", "mean", f"against {against}", f"worst seed against {against}"]
    record.table(heads, cells, title, model)


def plot(curves: dict[str, dict[str, list]], path: Path, smooth: int = 10) -> None:
    """Plot the training loss by step, as the mean of ``smooth`` reports.

    Each seed has a faint line, and their mean a bold one.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def smoothed(losses: list[float]) -> list[float]:
        return [
            statistics.fmean(losses[max(0, i + 1 - smooth) : i + 1]) for i in range(len(losses))
        ]

    colors = list(dict.fromkeys(name for methods in curves.values() for name in methods))
    figure, axes = pyplot.subplots(1, len(curves), figsize=(6 * len(curves), 5), squeeze=False)
    for axis, (model, methods) in zip(axes[0], curves.items(), strict=True):
        for name, runs in methods.items():
            color = f"C{colors.index(name)}"
            steps = [line["step"] for line in runs[0]]
            seeds = [smoothed([line["loss"] for line in run]) for run in runs]
            for losses in seeds:
                axis.plot(steps, losses, color=color, alpha=0.25, linewidth=0.6)
            mean = [statistics.fmean(losses) for losses in zip(*seeds, strict=True)]
            axis.plot(steps, mean, color=color, linewidth=1.3, label=name)
        axis.set(title=model, xlabel="step", ylabel="training loss, nats a character")
        axis.set_ylim(top=3.2)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80)
