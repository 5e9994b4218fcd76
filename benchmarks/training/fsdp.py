"""FSDP2 on shaped networks: HiPress in both directions, and uncompressed FSDP2 and DDP over Gloo.

Every node is a network namespace with one process. The GPT reads text with AdamW; FSDP2 shards each
of its blocks. ``--parts`` selects what is measured:

- "steps": all methods run one after another in the same processes, from the same initial weights
  and on the same batches. A step's time is its slowest rank's, and the median is shown, with the
  bytes that a rank's interface sent in a step. "alone" is DDP that sends nothing: the time of
  computing.
- "collectives": gathers of weights and reduce-scatters of gradients, uncompressed, of one module as
  large as a block, alone and both at once, against the time of the link.
- "memory": peak memory of a rank after the model was sharded, with one job for each method, on
  links that are not shaped. The model has 3 times as many blocks as for the other parts.

``--loss-steps 500`` also trains so many steps with each of ``--seeds`` on links that are not
shaped, and compares the mean loss of the last 50 steps. Losses do not depend on the machine's load.
Needs root.
"""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rates, Seeds
from benchmarks.common.results import Record, verdict
from benchmarks.training.node import ALONE, FSDP
from benchmarks.training.steps import measure
from harness import netns
from harness.netns import ShapedNetwork, bits_per_second
from harness.wan import linked

CODEC = "maxmin:bits=4"
OURS = f"{FSDP}{CODEC},gather=differences"
"""Method that the claims are about."""
METHODS = f"{ALONE} float32 fp16 {CODEC} {FSDP}float32 {FSDP}bf16 {FSDP}{CODEC} "
METHODS += f"{FSDP}none:gather=exact {FSDP}{CODEC},gather=exact {FSDP}{CODEC},gather=lossless "
METHODS += f"{FSDP}{CODEC},gather=blocks {OURS}"
RATIOS = {
    "FSDP2 float32 / this": FSDP + "float32",
    "FSDP2 bf16 / this": FSDP + "bf16",
    f"DDP {CODEC} / this": CODEC,
    "alone / this": ALONE,
}
"""Columns of the steps, with the method whose time is divided by the row's."""
CLAIMS = {
    "1gbit": [(FSDP + "float32", 8.0), (FSDP + "bf16", 4.0), (CODEC, 1 / 1.3)],
    "10gbit": [(ALONE, 1 / 1.15)],
}
"""Rates with methods, and the least ratio of their step's time to that of HiPress's method."""
IN_MEMORY = f"{FSDP}float32 {FSDP}none:gather=exact {FSDP}{CODEC},gather=blocks {OURS}"
LAST = 50
"""Steps whose mean loss is compared."""
EACH_MAPPED = {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}
"""Setting of glibc to return tensors to the kernel when they are freed."""


def main(
    rates: Rates = "1gbit",
    nodes: Nodes = 4,
    parts: Annotated[
        str, typer.Option(help="What to measure: steps, collectives, memory.")
    ] = "steps collectives memory",
    layers: Annotated[int, typer.Option(help="Blocks of the GPT, of 3.15 million weights.")] = 4,
    methods: Annotated[str, typer.Option(help="Separated by blanks.")] = METHODS,
    steps: int = 6,
    batch_size: Annotated[int, typer.Option(help="Texts per rank.")] = 1,
    context: Annotated[int, typer.Option(max=64, help="Characters of a text.")] = 16,
    loss_steps: Annotated[int, typer.Option(help="Also compare losses after so many.")] = 0,
    seeds: Seeds = "0 1 2",
    output: Output = "fsdp",
    timeout: float = 600,
    priority: Priority = False,
    dilation: Dilation = 4.0,
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        nodes, steps, layers, rates = 2, 2, 1, rates.split()[0]
    args = SimpleNamespace(**locals(), model="gpt", ranks_per_node=1)
    record = Record(output, {**vars(args), "methods": methods})
    args.methods = methods.split()
    record["rates"] = {}
    for rate in rates.split() if {"steps", "collectives"} & set(parts.split()) else ():
        with linked(nodes, rate, dilation) as network:
            if "steps" in parts.split():
                compare_steps(record, args, rate, network)
            if "collectives" in parts.split():
                compare_collectives(record, args, rate, network)
    if "memory" in parts.split():
        compare_memory(record, args)
    if loss_steps:
        compare_losses(record, args)
    record.save()


def compare_steps(record: Record, args: SimpleNamespace, rate: str, network: ShapedNetwork) -> None:
    """Add the table of the steps at a rate, and say which claims hold."""
    rows = record["rates"][rate] = measure(args, network, args.steps, 0, 3)
    times = {method: row["ms"] for method, row in rows.items()}
    cells = []
    for method, row in rows.items():
        line = [method, f"{row['ms']:.0f}"]
        line += [f"{times[m] / row['ms']:.2f}" if m in times else "" for m in RATIOS.values()]
        cells.append([*line, f"{row['processor_ms']:.0f}", f"{row['sent'] / 1e6:.2f}"])
    size = next(iter(rows.values()))["parameters"] / 1e6
    title = f"GPT, {size:.1f} million weights, {args.nodes} emulated nodes at {rate}, dilation "
    heads = ["method", "ms a step", *RATIOS, "processor, ms", "MB sent"]
    record.table(heads, cells, f"{title}{args.dilation:g}", rate)
    for method, least in CLAIMS.get(rate, []):
        if {method, OURS} <= times.keys():
            ratio = times[method] / times[OURS]
            text = f"{rate}: {method} takes {ratio:.2f} times as long as {OURS}; at least"
            verdict(ratio >= least, f"{text} {least:.2f}")


def compare_collectives(
    record: Record, args: SimpleNamespace, rate: str, network: ShapedNetwork
) -> None:
    """Add the table of uncompressed gathers and reduce-scatters at a rate."""
    rows = 256 if args.quick else 3072
    command = jobs.node("training.fsdp_collectives_node", rows=rows, repetitions=args.steps)
    results = jobs.torch_job(command, args.nodes, network, args.timeout, args.priority)
    reports = jobs.reports(results)
    other_ranks = (args.nodes - 1) / args.nodes
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(report["name"] for report in reports):
        of = [report for report in reports if report["name"] == name]
        seconds = statistics.median(jobs.slowest(of, network=network))
        bits = 8 * of[0]["bytes"] * other_ranks
        found[name] = {
            "ms": 1e3 * seconds,
            "wire_ms": 1e3 * bits / bits_per_second(rate),
            "sent": statistics.fmean(statistics.median(report["sent"]) for report in of),
        }
    record.setdefault("collectives", {})[rate] = found
    cells = [
        [name, f"{row['ms']:.1f}", f"{row['ms'] / row['wire_ms']:.3f}", f"{row['sent'] / 1e6:.2f}"]
        for name, row in found.items()
    ]
    size = 4 * rows * 1024 / 1e6
    title = f"one module of {size:.1f} MB, {args.nodes} emulated nodes at {rate}, dilation "
    heads = ["collective", "ms", "against the wire", "MB sent"]
    record.table(heads, cells, f"{title}{args.dilation:g}", f"collectives-{rate}")
    for name, row in found.items():
        if name.startswith("HiPress"):
            ratio = row["ms"] / row["wire_ms"]
            verdict(ratio <= 1.08, f"{rate}: {name} takes {ratio:.3f} times as long as the wire")


def compare_memory(record: Record, args: SimpleNamespace) -> None:
    """Add the table of a rank's peak memory, measured with one job for each method."""
    found: dict[str, dict[str, Any]] = {}
    args = SimpleNamespace(**{**vars(args), "layers": 3 * args.layers})
    with ShapedNetwork(args.nodes, rate=None) as network:
        for method in IN_MEMORY.split():
            found |= measure(args, network, 2, 0, 1, methods=[method], env=EACH_MAPPED)
    base = found[FSDP + "float32"]["peak_bytes"]
    record["memory"] = {method: row["peak_bytes"] for method, row in found.items()}
    cells = []
    for method, row in found.items():
        replica, peak = row["replica_bytes"], row["peak_bytes"]
        without = f"{(peak - replica) / base - 1:+.1%}"
        cells.append([method, f"{peak / 1e6:.0f}", f"{replica / 1e6:.0f}", without])
        if method != FSDP + "float32":
            text = f"{method}: peak without the replica {without} of that of FSDP2 float32"
            verdict(peak - replica <= 1.05 * base, text)
    size = next(iter(found.values()))["parameters"] / 1e6
    heads = ["method", "peak, MB", "replica, MB", "without the replica, to float32"]
    record.table(heads, cells, f"memory of a rank, GPT, {size:.1f} million weights", "memory")


def compare_losses(record: Record, args: SimpleNamespace) -> None:
    """Add the table of the losses after ``--loss-steps``, which FSDP2 in float32 begins."""
    methods = [method for method in args.methods if method.startswith(FSDP)]
    found: dict[str, list[float]] = {method: [] for method in methods}
    for seed in args.seeds.split():
        with ShapedNetwork(args.nodes, rate=None) as network:
            rows = measure(args, network, args.loss_steps, 0, 0, int(seed), methods)
        for method, row in rows.items():
            found[method].append(statistics.fmean(row["losses"][-LAST:]))
    record["losses"] = found
    base = found[FSDP + "float32"]
    cells = []
    for method, losses in found.items():
        change = statistics.fmean(loss / own - 1 for loss, own in zip(losses, base))
        cells.append([method, *(f"{loss:.4f}" for loss in losses), f"{change:+.2%}"])
        if method == OURS:
            verdict(change <= 0.01, f"loss of {method} {change:+.2%} of that of FSDP2 float32")
    heads = ["method", *(f"seed {seed}" for seed in args.seeds.split()), "to float32"]
    record.table(heads, cells, f"mean loss of the last {LAST} of {args.loss_steps} steps", "losses")
