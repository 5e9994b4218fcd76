"""DDP training on shaped networks: HiPress beside DDP's float32, fp16 and PowerSGD, in one job.

    python benchmarks/torchtraining.py --model vgg --rates 100mbit 1gbit 10gbit
    python benchmarks/torchtraining.py --model vgg --rates 1gbit --target 80

Every node is a network namespace with one process. All methods run in turn in the same processes,
from the same initial weights and on the same batches. A step's time is its slowest rank's; the
median is shown, and that of the processor time of a rank in a step, of all its threads, which is
not dilated (mean over the ranks). ``--target 80`` first trains for 120 steps, half as many again,
on links that are not shaped, with a learning rate that falls, and counts the steps until the loss
(mean of the last 20 steps) is float32's after 80 (the mean over the seeds, if there are several);
the time to that loss is that many steps of the median time. When a single seed gets there is mostly
chance, so the same is told of the mean of all seeds. The VGG-like network learns 4 batches a
rank by heart, with SGD; the GPT reads text, with Adam. Methods that end in "+late" do the first 15%
of the steps as float32 does, and are counted so; ours then freeze Adam's denominators (see
docs/reference/torch.md). "alone" sends nothing: its step is the bound of all, and it has no loss to
compare. ``--seeds 0 1 2`` repeats the losses (not the times, on which weights have no bearing);
``--losses FILE`` takes those of an earlier run, as losses do not depend on what else the machine
does. Prints tables; writes JSON to output/benchmarks. Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import jobs
from harness.netns import ShapedNetwork, add_dilation
from torchnode import ALONE, LATE, PEERS

METHODS = f"{ALONE} float32 fp16 powersgd:1 powersgd:4 onebit tbq:threshold=0.001 "
METHODS += "maxmin:bits=4 dgc:ratio=0.01,momentum=0"
TO_LOSS = {
    "gpt": f"{ALONE} float32 fp16 powersgd:1 powersgd:1+late onebit+late maxminef:bits=4+late",
    "vgg": f"{ALONE} float32 fp16 powersgd:1 onebit maxminef:bits=4 tbq:threshold=0.003",
}
SMOOTH = 20  # steps; of the VGG-like network, 5 times its training set
SHARE = 0.15  # of the steps, before "+late" begins
MORE = 1.5  # steps than to the target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["vgg", "gpt"], default="vgg")
    parser.add_argument(
        "--rates", nargs="*", default=["1gbit"], metavar="RATE", help="none: losses only"
    )
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--methods", help=f"default: {METHODS}; with --target {TO_LOSS}")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=1, help="images, or texts, per rank")
    parser.add_argument("--context", type=int, default=16, help="characters of a text, 64 at most")
    parser.add_argument(
        "--target", type=int, default=0, metavar="STEPS",
        help="also the time to the loss of float32 after so many steps",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0], help="of weights and batches, for the losses"
    )
    parser.add_argument("--losses", type=Path, metavar="FILE", help="JSON of an earlier --target")
    parser.add_argument("--output", default="torchtraining")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--priority", action="store_true", help="before this machine's other work")
    add_dilation(parser)
    args = parser.parse_args()
    if 0 < args.target < SMOOTH:
        parser.error(f"--target must be {SMOOTH} or more: losses are means of so many steps")
    args.methods = args.methods or (TO_LOSS[args.model] if args.target else METHODS)
    jobs.clean_up_when_terminated()
    found: dict[str, Any] = {"machine": jobs.machine(), "model": args.model,
                             "dilation": args.dilation, "rates": {}}  # fmt: skip
    steps: dict[str, list[int | None]] = {}
    late = int(SHARE * MORE * args.target)
    if args.target:
        curves = found["losses"] = losses(args, late)
        steps = found["steps_to_target"] = steps_to_target(args, curves)
        found["steps_of_mean"] = steps_of_mean(args, curves)
        print(f"steps to the loss of float32 after {args.target}, by seed: {steps}", flush=True)
    for rate in args.rates:
        shape = {"rate": rate, "verify": False, "dilation": args.dilation}
        with ShapedNetwork(args.nodes, **shape) as network:
            rows = found["rates"][rate] = measure(args, network, args.steps, 2, 5)
        seconds = {
            method: [count and times(rows, method, count, late) for count in counts]
            for method, counts in steps.items()
        }
        found.setdefault("seconds", {})[rate] = seconds
        show(args, rate, rows, steps, seconds)
        if len(args.seeds) > 1 and steps:
            show_mean(args, rows, found["steps_of_mean"], late)
    path = jobs.save(f"{args.output}-{args.model}", found)
    print(f"written to {path.relative_to(jobs.ROOT)}")


def sending(args: argparse.Namespace) -> list[str]:
    """The methods that have losses to compare."""
    return [method for method in args.methods.split() if method != ALONE]


def losses(args: argparse.Namespace, late: int) -> dict[str, dict[str, list[float]]]:
    """The losses of each method by seed: of an earlier run, if it has them, or on free links."""
    steps = int(MORE * args.target)
    earlier = json.loads(args.losses.read_text())["losses"] if args.losses else {}
    curves = {}
    for seed in map(str, args.seeds):
        known = {m: c for m, c in earlier.get(seed, {}).items() if len(c) == steps}
        if missing := [method for method in sending(args) if method not in known]:
            with ShapedNetwork(args.nodes, rate=None) as network:
                rows = measure(args, network, steps, late, 0, int(seed), missing)
            known |= {method: row["losses"] for method, row in rows.items()}
        curves[seed] = known
    return curves


def steps_to_target(
    args: argparse.Namespace, curves: dict[str, dict[str, list[float]]]
) -> dict[str, list[int | None]]:
    """For each method and seed, the steps to float32's loss, its mean over the seeds, or None."""
    steps: dict[str, list[int | None]] = {method: [] for method in sending(args)}
    target = statistics.fmean(smooth(of["float32"])[args.target - 1] for of in curves.values())
    for of_seed in curves.values():
        for method, counts in steps.items():
            reached = [i for i, loss in enumerate(smooth(of_seed[method])) if loss <= target]
            counts.append(reached[0] + 1 if reached else None)
    return steps


def steps_of_mean(
    args: argparse.Namespace, curves: dict[str, dict[str, list[float]]]
) -> dict[str, int | None]:
    """The same for the mean of the seeds' losses, of which chance is a smaller part."""
    mean = {
        method: [statistics.fmean(now) for now in zip(*(of[method] for of in curves.values()))]
        for method in sending(args)
    }
    return {method: count for method, (count,) in steps_to_target(args, {"mean": mean}).items()}


def times(rows: dict[str, Any], method: str, count: int, late: int) -> float:
    """Seconds of ``count`` steps of a method, the first ones those of float32 if it is late."""
    first = min(count, late) if method.endswith(LATE) else 0
    return (first * rows["float32"]["ms"] + (count - first) * rows[method]["ms"]) / 1e3


def measure(
    args: argparse.Namespace, network: ShapedNetwork, steps: int, late: int, warmup: int,
    seed: int = 0, methods: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    methods = methods or args.methods.split()
    command = [sys.executable, str(jobs.ROOT / "benchmarks" / "torchnode.py")]
    command += ["--model", args.model, "--methods", " ".join(methods), "--steps", str(steps)]
    command += ["--late", str(late), "--warmup", str(warmup), "--seed", str(seed)]
    command += ["--batch-size", str(args.batch_size), "--context", str(args.context)]
    reports = jobs.reports(
        jobs.run_torch_job(command, args.nodes, network, args.timeout, args.priority)
    )
    rows: dict[str, Any] = {}
    for method in methods:
        of = [report for report in reports if report["method"] == method]
        seconds = jobs.iteration_seconds(of, network=network)
        rows[method] = {
            "parameters": of[0]["parameters"],
            "ms": 1e3 * statistics.median(seconds[-steps:]),
            "seconds": seconds,
            "processor_ms": 1e3 * statistics.fmean(
                statistics.median(report["processor"][-steps:]) for report in of
            ),
            "losses": of[0]["losses"],
        }
    return rows


def smooth(losses: list[float]) -> list[float]:
    """The mean of the last SMOOTH steps at each step, infinite where there are fewer."""
    return [
        statistics.fmean(losses[i + 1 - SMOOTH : i + 1]) if i + 1 >= SMOOTH else float("inf")
        for i in range(len(losses))
    ]


def show(
    args: argparse.Namespace, rate: str, rows: dict[str, Any],
    steps: dict[str, list[int | None]], seconds: dict[str, list[float | None]],
) -> None:  # fmt: skip
    """A table; seconds are the mean over the seeds, the last column the geometric mean."""
    best = min(row["ms"] for method, row in rows.items() if method.startswith(PEERS))
    size = next(iter(rows.values()))["parameters"] / 1e6
    print(f"\n{args.model}, {size:.1f} million weights, {args.nodes} nodes at {rate}, dilation "
          f"{args.dilation:g}\n")  # fmt: skip
    head = "| method | ms a step | against the best peer | processor, ms |"
    if steps:
        head += " steps to the loss | seconds | against the best peer (worst seed) |"
    print(head)
    print("|---" * (head.count("|") - 1) + "|")
    soonest = [
        min(s for m, of in seconds.items() if m.startswith(PEERS) and (s := of[i]) is not None)
        for i in range(len(seconds.get("float32", [])))
    ]
    for method, row in rows.items():
        line = f"| {method} | {row['ms']:.0f} | {best / row['ms']:.2f} |"
        line += f" {row['processor_ms']:.0f} |"
        if method in steps:
            line += " " + ", ".join(str(count or "not reached") for count in steps[method]) + " |"
            reached = [s for s in seconds[method] if s is not None]
            if len(reached) == len(soonest):
                gains = [peer / own for peer, own in zip(soonest, reached)]
                gain = f"{statistics.geometric_mean(gains):.2f} ({min(gains):.2f})"
                line += f" {statistics.fmean(reached):.1f} | {gain} |"
            else:
                line += " | |"
        elif steps:
            line += " | | |"
        print(line, flush=True)


def show_mean(
    args: argparse.Namespace, rows: dict[str, Any], steps: dict[str, int | None], late: int
) -> None:
    """A table of the times to the loss of the mean of all seeds."""
    seconds = {m: times(rows, m, count, late) for m, count in steps.items() if count}
    best = min(of for method, of in seconds.items() if method.startswith(PEERS))
    print(f"\nuntil the mean of {len(args.seeds)} seeds is what float32's is after {args.target}\n")
    print("| method | steps | seconds | against the best peer |")
    print("|---|---|---|---|")
    for method, count in steps.items():
        gain = f"{seconds[method]:.1f} | {best / seconds[method]:.2f}" if count else " | "
        print(f"| {method} | {count or 'not reached'} | {gain} |", flush=True)


if __name__ == "__main__":
    main()
