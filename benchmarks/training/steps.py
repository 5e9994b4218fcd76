"""DDP training on shaped networks: HiPress, and DDP's float32, fp16 and PowerSGD, in one job.

Every node is a network namespace with one process, or ``--ranks-per-node``. All methods run in turn
in the same processes, from the same initial weights and on the same batches. A step's time is its
slowest rank's. The median is shown, and the median processor time of a rank in a step, of all its
threads, which is not dilated (mean over the ranks).

``--target 80`` first trains for 120 steps, half as many again, on links that are not shaped, with a
decreasing learning rate. It counts the steps until the loss (mean of the last 20 steps) is
float32's after 80 (the mean over the seeds, if there are several). The time to that loss is that
many steps of the median time. For a single seed this is mostly chance, so it is also shown for the
mean of all seeds.

The VGG-like network memorizes 4 batches per rank, with SGD; the GPT reads text, with Adam. Methods
that end in "+late" do the first 15% of the steps as float32 does, and are counted so; HiPress's
then freeze Adam's denominators (`FrozenAdamW`). "alone" sends nothing: its step is the lower bound
of all, and it has no loss to compare. "auto" chooses before the timed steps; the duration of its
choice is also shown. ``--seeds "0 1 2"`` repeats the losses (not the times, which do not depend on
weights). ``--losses FILE`` takes those of an earlier run, because losses do not depend on the
machine's load. MB are the bytes that a rank's network interface sent in a step. Needs root.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rates, Seeds, Wan
from benchmarks.common.results import Record
from benchmarks.training.node import ALONE, AUTO, LATE, PEERS
from harness import netns
from harness.netns import ShapedNetwork
from harness.wan import linked

METHODS = f"{ALONE} float32 fp16 powersgd:1 powersgd:4 onebit tbq:threshold=0.001 "
METHODS += "maxmin:bits=4 dgc:ratio=0.01,momentum=0"
TO_LOSS = {
    "gpt": f"{ALONE} float32 fp16 powersgd:1 powersgd:1+late onebit+late maxminef:bits=4+late",
    "vgg": f"{ALONE} float32 fp16 powersgd:1 onebit maxminef:bits=4 tbq:threshold=0.003",
}
SMOOTH = 20  # steps; of the VGG-like network, 5 times its training set
SHARE = 0.15  # of the steps, before "+late" begins
MORE = 1.5  # steps than to the target


def main(
    model: Annotated[str, typer.Option(help="vgg or gpt.")] = "vgg",
    rates: Rates = "1gbit",
    wan: Wan = "",
    nodes: Nodes = 4,
    ranks_per_node: Annotated[int, typer.Option(min=1)] = 1,
    methods: Annotated[str, typer.Option(help="Separated by blanks.")] = "",
    steps: int = 8,
    batch_size: Annotated[int, typer.Option(help="Images, or texts, per rank.")] = 1,
    context: Annotated[int, typer.Option(max=64, help="Characters of a text.")] = 16,
    target: Annotated[
        int, typer.Option(help="Also the time to the loss of float32 after so many steps.")
    ] = 0,
    seeds: Seeds = "0",
    losses: Annotated[Path, typer.Option(help="JSON of an earlier --target.")] = None,
    output: Output = "training",
    timeout: float = 600,
    priority: Priority = False,
    dilation: Dilation = 1.0,
    quick: Quick = False,
) -> None:
    if 0 < target < SMOOTH:
        raise typer.BadParameter(f"losses are means of {SMOOTH} steps", param_hint="--target")
    netns.require()
    if quick:
        nodes, steps, rates, methods = 2, 3, rates.split()[0], methods or "float32 onebit"
    methods = methods or (TO_LOSS[model] if target else METHODS)
    args = SimpleNamespace(**locals())
    record = Record(f"{output}-{model}", vars(args))
    args.methods, args.seeds = methods.split(), seeds.split()
    if not any(method.startswith(PEERS) for method in args.methods):
        raise typer.BadParameter(
            f"one method must be a peer to compare with: {', '.join(PEERS)}", param_hint="--methods"
        )
    counts: dict[str, list[int | None]] = {}
    late = int(SHARE * MORE * target)
    if target:
        curves = record["losses"] = curves_of(args, late)
        counts = record["steps_to_target"] = steps_to_target(args, curves)
        record["steps_of_mean"] = steps_of_mean(args, curves)
        print(f"steps to the loss of float32 after {target}, by seed: {counts}", flush=True)
    record["rates"], record["seconds"] = {}, {}
    for rate in [wan] if wan else rates.split():
        with linked(nodes, rate, dilation) as network:
            rows = record["rates"][rate] = measure(args, network, steps, 2, 5)
        seconds = record["seconds"][rate] = {
            method: [count and times(rows, method, count, late) for count in of_seed]
            for method, of_seed in counts.items()
        }
        show(record, rate, rows, counts, seconds)
        if len(args.seeds) > 1 and counts:
            show_mean(record, rate, rows, record["steps_of_mean"], late)
    record.save()


def sending(args: SimpleNamespace) -> list[str]:
    """Return the methods that have losses to compare."""
    return [method for method in args.methods if method != ALONE]


def curves_of(args: SimpleNamespace, late: int) -> dict[str, dict[str, list[float]]]:
    """Return the losses of each method by seed: from an earlier run, or measured on free links."""
    steps = int(MORE * args.target)
    earlier = json.loads(args.losses.read_text())["losses"] if args.losses else {}
    curves = {}
    for seed in args.seeds:
        known = {m: c for m, c in earlier.get(seed, {}).items() if len(c) == steps}
        if missing := [method for method in sending(args) if method not in known]:
            with ShapedNetwork(args.nodes, rate=None) as network:
                rows = measure(args, network, steps, late, 0, int(seed), missing)
            known |= {method: row["losses"] for method, row in rows.items()}
        curves[seed] = known
    return curves


def steps_to_target(
    args: SimpleNamespace, curves: dict[str, dict[str, list[float]]]
) -> dict[str, list[int | None]]:
    """Return the steps to float32's loss for each method and seed, and the mean over the seeds.

    A value is None if the loss is not reached.
    """
    steps: dict[str, list[int | None]] = {method: [] for method in sending(args)}
    target = statistics.fmean(smooth(of["float32"])[args.target - 1] for of in curves.values())
    for of_seed in curves.values():
        for method, counts in steps.items():
            reached = [i for i, loss in enumerate(smooth(of_seed[method])) if loss <= target]
            counts.append(reached[0] + 1 if reached else None)
    return steps


def steps_of_mean(
    args: SimpleNamespace, curves: dict[str, dict[str, list[float]]]
) -> dict[str, int | None]:
    """Return the same for the mean of the seeds' losses, which depends less on chance."""
    mean = {
        method: [statistics.fmean(now) for now in zip(*(of[method] for of in curves.values()))]
        for method in sending(args)
    }
    return {method: count for method, (count,) in steps_to_target(args, {"mean": mean}).items()}


def times(rows: dict[str, Any], method: str, count: int, late: int) -> float:
    """Return the seconds of ``count`` steps. A late method's first steps are float32's."""
    first = min(count, late) if method.endswith(LATE) else 0
    return (first * rows["float32"]["ms"] + (count - first) * rows[method]["ms"]) / 1e3


def measure(
    args: SimpleNamespace,
    network: ShapedNetwork,
    steps: int,
    late: int,
    warmup: int,
    seed: int = 0,
    methods: list[str] | None = None,
    env: Mapping[str, str] = jobs.MALLOC,
) -> dict[str, Any]:
    methods = methods or args.methods
    command = jobs.node(
        "training.node",
        model=args.model,
        methods=methods,
        steps=steps,
        late=late,
        warmup=warmup,
        seed=seed,
        batch_size=args.batch_size,
        context=args.context,
        layers=getattr(args, "layers", 4),
    )
    ranks = args.nodes * args.ranks_per_node
    results = jobs.torch_job(command, ranks, network, args.timeout, args.priority, env)
    reports = jobs.reports(results)
    rows: dict[str, Any] = {}
    for method in methods:
        of = [report for report in reports if report["method"] == method]
        seconds = jobs.slowest(of, network=network)
        rows[method] = {
            "parameters": of[0]["parameters"],
            "ms": 1e3 * statistics.median(seconds[-steps:]),
            "seconds": seconds,
            "processor_ms": 1e3
            * statistics.fmean(statistics.median(report["processor"][-steps:]) for report in of),
            "sent": statistics.fmean(statistics.median(report["sent"][-steps:]) for report in of),
            "losses": of[0]["losses"],
            "peak_bytes": max(report["peak_bytes"] for report in of),
            "replica_bytes": max(report["replica_bytes"] for report in of),
        }
        if method == AUTO:
            rows[method] |= {name: of[0][name] for name in ("way", "explanation", "trial_steps")}
            for name in ("chose_seconds", "settled_seconds"):
                rows[method][name] = jobs.slowest(of, name, network)[0]
    return rows


def smooth(losses: list[float]) -> list[float]:
    """Return the mean of the last SMOOTH steps at each step, or infinity if there are fewer."""
    return [
        statistics.fmean(losses[i + 1 - SMOOTH : i + 1]) if i + 1 >= SMOOTH else float("inf")
        for i in range(len(losses))
    ]


def show(
    record: Record,
    rate: str,
    rows: dict[str, Any],
    steps: dict[str, list[int | None]],
    seconds: dict[str, list[float | None]],
) -> None:
    """Add a table of seconds (mean over the seeds). Its last column is the geometric mean."""
    best = min(row["ms"] for method, row in rows.items() if method.startswith(PEERS))
    soonest = [
        min(s for m, of in seconds.items() if m.startswith(PEERS) and (s := of[i]) is not None)
        for i in range(len(seconds.get("float32", [])))
    ]
    cells = []
    for method, row in rows.items():
        name = f"{method} ({row['way']})" if "way" in row else method
        line = [name, f"{row['ms']:.0f}", f"{best / row['ms']:.2f}"]
        line += [f"{row['processor_ms']:.0f}", f"{row['sent'] / 1e6:.2f}"]
        if method in steps:
            line.append(", ".join(str(count or "not reached") for count in steps[method]))
            reached = [s for s in seconds[method] if s is not None]
            if len(reached) == len(soonest):
                gains = [peer / own for peer, own in zip(soonest, reached)]
                line.append(f"{statistics.fmean(reached):.1f}")
                line.append(f"{statistics.geometric_mean(gains):.2f} ({min(gains):.2f})")
        cells.append(line)
    heads = ["method", "ms a step", "against the best peer", "processor, ms", "MB sent"]
    if steps:
        heads += ["steps to the loss", "seconds", "against the best peer (worst seed)"]
    options, size = record["options"], next(iter(rows.values()))["parameters"] / 1e6
    each = f" of {options['ranks_per_node']} ranks" if options["ranks_per_node"] > 1 else ""
    title = f"{options['model']}, {size:.1f} million weights, {options['nodes']} nodes{each} at "
    title += f"{rate}, "
    padded = [[*line, *[""] * (len(heads) - len(line))] for line in cells]
    record.table(heads, padded, f"{title}dilation {options['dilation']:g}", rate)
    if AUTO in rows:
        auto = rows[AUTO]
        print(
            f"{auto['explanation']}\nauto chose in {auto['chose_seconds']:.1f} s, and was settled "
            f"after {auto['trial_steps']} steps, {auto['settled_seconds']:.1f} s",
            flush=True,
        )


def show_mean(
    record: Record, rate: str, rows: dict[str, Any], steps: dict[str, int | None], late: int
) -> None:
    """Add a table of the times to the loss of the mean of all seeds."""
    seconds = {m: times(rows, m, count, late) for m, count in steps.items() if count}
    best = min(of for method, of in seconds.items() if method.startswith(PEERS))
    cells = [
        [method, count, f"{seconds[method]:.1f}", f"{best / seconds[method]:.2f}"]
        if count
        else [method, "not reached", "", ""]
        for method, count in steps.items()
    ]
    heads = ["method", "steps", "seconds", "against the best peer"]
    target = record["options"]["target"]
    title = f"until the mean of all seeds is what float32's is after {target}"
    record.table(heads, cells, title, f"{rate}-mean")
