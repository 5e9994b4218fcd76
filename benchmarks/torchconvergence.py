"""The loss of the text examples with and without compression, three seeds, as a table and a plot.

    python benchmarks/torchconvergence.py --steps 300 --ranks 2

Runs examples/torch/text.py under torchrun on this machine's loopback. Prints the loss on held-out
text after the same number of steps; writes JSON and a PNG to output/benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import Any

import jobs

METHODS = {
    "none": [],
    "onebit": ["--compression", "onebit"],
    "maxmin 4 bits": ["--compression", "maxmin", "--param", "bits=4"],
    "dgc 1%": ["--compression", "dgc", "--param", "ratio=0.01"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["lstm", "gpt"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--min-size", type=int, default=4096)
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    jobs.RESULTS.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"machine": jobs.machine(), "curves": {}}
    for model in args.models:
        curves = found["curves"][model] = {
            name: [train(args, model, options, seed) for seed in range(args.seeds)]
            for name, options in METHODS.items()
        }
        show(args, model, curves)
    (jobs.RESULTS / "torchconvergence.json").write_text(json.dumps(found, indent=1))
    plot(found["curves"], jobs.RESULTS / "torchconvergence.png")


def train(args: argparse.Namespace, model: str, options: list[str], seed: int) -> list[dict]:
    """The lines that one run printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={args.ranks}", str(jobs.ROOT / "examples/torch/text.py")]
    command += ["--model", model, "--seed", str(seed), "--steps", str(args.steps)]
    command += ["--width", str(args.width), "--layers", str(args.layers)]
    command += ["--min-size", str(args.min_size), *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    env["PYTHONPATH"] = str(jobs.ROOT / "python")
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=env)
    if done.returncode:
        raise jobs.JobError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def show(args: argparse.Namespace, model: str, curves: dict[str, list]) -> None:
    print(f"\n{model}, loss on held-out text after {args.steps} steps on {args.ranks} ranks\n")
    print("| compression | mean | worst seed against none |")
    print("|---|---|---|")
    for name, runs in curves.items():
        losses = [run[-1]["test_loss"] for run in runs]
        plain = [run[-1]["test_loss"] for run in curves["none"]]
        worst = max(100 * (a / b - 1) for a, b in zip(losses, plain, strict=True))
        print(f"| {name} | {statistics.fmean(losses):.4f} | {worst:+.2f}% |", flush=True)


def plot(curves: dict[str, dict[str, list]], path: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), figsize=(5 * len(curves), 4), squeeze=False)
    for axis, (model, methods) in zip(axes[0], curves.items(), strict=True):
        for color, (name, runs) in enumerate(methods.items()):
            for number, run in enumerate(runs):
                axis.plot(
                    [line["step"] for line in run], [line["loss"] for line in run],
                    color=f"C{color}", alpha=0.7, label=name if number == 0 else None,
                )  # fmt: skip
        axis.set(title=model, xlabel="step", ylabel="training loss, nats a character")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
