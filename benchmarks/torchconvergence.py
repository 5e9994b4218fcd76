"""The loss of the text examples with and without compression, three seeds, as a table and a plot.

    python benchmarks/torchconvergence.py --models lstm --steps 4000

Trains the models of examples/torch/text.py on this machine's loopback, one after the other in the
same processes. Prints the loss on held-out text after the same number of steps; writes JSON and a
PNG to output/benchmarks. Long runs may be cut in parts (--methods, --first-seed) and joined; all
methods of a seed are compared with "none" of that seed, so give the parts in the order of seeds:

    python benchmarks/torchconvergence.py --join output/benchmarks/a.json output/benchmarks/b.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import jobs

PASSED = ["steps", "width", "layers", "min_size", "batch_size"]
METHODS = {
    "none": [],
    "none, frozen": [],
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
}

SHARED = ("onebit", "ternary")
"""Methods that compress the momentum which all ranks have."""

USUAL = {"lstm": ("sgd", "0.3"), "gpt": ("adam", "0.004")}
"""Optimizer and learning rate of a model."""


def settings(model: str, method: str, steps: int) -> list[str]:
    """Optimizer and warm-up of a run. The peer, "none", has what is usual for the model; powersgd
    has that too, to which "late" adds a warm-up, and "frozen" denominators that stay after it."""
    optimizer, rate = USUAL[model]
    if method.startswith("powersgd"):
        warmup = 0.15 if "," in method else 0.0
        frozen = "frozen" in method
    elif model == "lstm":
        warmup = {"onebit": 0.15, "ternary": 0.15, "dgc 1%": 0.3}.get(method, 0.0)  # dgc's: a ramp
        frozen = False
    else:
        warmup = {"none": 0.0, "maxmin 4 bits": 0.0, "dgc 1%": 0.3}.get(method, 0.15)
        frozen = warmup > 0
    chosen = ["--optimizer", "frozen" if frozen else optimizer, "--learning-rate", rate]
    if (model, method) == ("gpt", "dgc 1%"):
        chosen += ["--param", "warmup=0", "--param", "momentum=0.9"]
    chosen += ["--shared-momentum", "0.9"] if method in SHARED else []
    return [*chosen, "--warmup-steps", str(int(warmup * steps))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["lstm", "gpt"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--min-size", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=4, help="per rank")
    parser.add_argument("--priority", action="store_true", help="before this machine's other work")
    parser.add_argument("--output", default="torchconvergence", help="the files' name")
    parser.add_argument("--join", nargs="+", metavar="FILE", help="show runs written earlier")
    parser.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.node:
        run_node(args)
        return
    jobs.RESULTS.mkdir(parents=True, exist_ok=True)
    if args.join:
        joined: dict[str, Any] = {}
        for file in args.join:
            for model, curves in json.loads(Path(file).read_text())["curves"].items():
                for name, runs in curves.items():
                    joined.setdefault(model, {}).setdefault(name, []).extend(runs)
        for model, curves in joined.items():
            show(model, curves)
        plot(joined, jobs.RESULTS / f"{args.output}.png")
        return
    jobs.clean_up_when_terminated()
    found: dict[str, Any] = {"machine": jobs.machine(), "curves": {}}
    for model in args.models:
        command = [sys.executable, __file__, "--node", "--models", model]
        methods = [name for name in args.methods if model == "gpt" or "frozen" not in name]
        command += ["--methods", *methods]
        for name in ("seeds", "first_seed", *PASSED):
            command += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
        lines = jobs.reports(jobs.run_torch_job(command, args.ranks, None, 7200, args.priority))
        curves: dict[str, list] = {name: [] for name in methods}
        for line in lines:
            curves[line["method"]].append(line["curve"])
        found["curves"][model] = curves
        show(model, curves)
    jobs.save(args.output, found)
    plot(found["curves"], jobs.RESULTS / f"{args.output}.png")


def run_node(args: argparse.Namespace) -> None:
    """One rank: trains one model with every method and seed, and reports the curves."""
    sys.path[:0] = [str(jobs.ROOT / "examples" / "torch"), str(jobs.ROOT / "python")]
    import text
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name in args.methods:
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            given = ["--model", args.models[0], "--seed", str(seed), *METHODS[name]]
            given += settings(args.models[0], name, args.steps)
            for passed in PASSED:
                given += [f"--{passed.replace('_', '-')}", str(getattr(args, passed))]
            curve: list[dict] = []

            def report(step: int, loss: torch.Tensor, curve: list = curve, **more: float) -> None:
                if step % 10 == 0 or more:
                    mean = loss.detach() / dist.get_world_size()
                    dist.all_reduce(mean)
                    curve.append({"step": step, "loss": mean.item(), **more})

            text.train(text.arguments(given), report)
            if dist.get_rank() == 0:
                jobs.report(method=name, seed=seed, curve=curve)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def show(model: str, curves: dict[str, list]) -> None:
    steps, seeds = next(iter(curves.values()))[0][-1]["step"], len(next(iter(curves.values())))
    print(f"\n{model}, loss on held-out text after {steps} steps, {seeds} seeds\n")
    print("| compression | mean | against none | worst seed against none |")
    print("|---|---|---|---|")
    plain = [run[-1]["test_loss"] for run in curves.get("none", [])]
    for name, runs in curves.items():
        losses = [run[-1]["test_loss"] for run in runs]
        line = f"| {name} | {statistics.fmean(losses):.4f} |"
        gaps = [100 * (a / b - 1) for a, b in zip(losses, plain, strict=False)]
        if gaps:
            line += f" {statistics.fmean(gaps):+.2f}% | {max(gaps):+.2f}% |"
        print(line, flush=True)


def plot(curves: dict[str, dict[str, list]], path: Path, smooth: int = 10) -> None:
    """The training loss by step, the mean of ``smooth`` reports: a faint line for each seed, a bold
    one for their mean."""
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


if __name__ == "__main__":
    main()
