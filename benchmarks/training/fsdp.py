"""FSDP2 on shaped networks: HiPress in both directions, and uncompressed FSDP2 and DDP over Gloo.

Every node is a network namespace with one process. The GPT reads text with AdamW; FSDP2 shards each
of its blocks. All methods run one after another in the same processes, from the same initial
weights and on the same batches. A step's time is its slowest rank's, and the median is shown, with
the bytes that a rank's interface sent in a step and the loss of the last steps. "alone" is DDP that
sends nothing: the time of computing. Needs root.

``--loss-steps 500`` also trains so many steps with each of ``--seeds`` on links that are not
shaped, and compares the mean loss of the last 50 steps. Losses do not depend on the machine's load.
"""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Annotated

import typer

from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rates, Seeds
from benchmarks.common.results import Record
from benchmarks.training.node import ALONE, FSDP
from benchmarks.training.steps import measure
from harness import netns
from harness.netns import ShapedNetwork
from harness.wan import linked

METHODS = f"{ALONE} float32 fp16 maxmin:bits=4 {FSDP}float32 {FSDP}bf16 {FSDP}maxmin:bits=4 "
METHODS += f"{FSDP}none:gather=exact {FSDP}maxmin:bits=4,gather=exact "
METHODS += f"{FSDP}maxmin:bits=4,gather=blocks {FSDP}maxmin:bits=4,gather=differences"
LAST = 50
"""Steps whose mean loss is compared."""


def main(
    rates: Rates = "1gbit",
    nodes: Nodes = 4,
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
    for rate in rates.split():
        with linked(nodes, rate, dilation) as network:
            rows = record["rates"][rate] = measure(args, network, steps, 0, 3)
        base = {name: rows.get(FSDP + name, {}).get("ms") for name in ("float32", "bf16")}
        cells = []
        for method, row in rows.items():
            gains = [f"{peer / row['ms']:.2f}" if peer else "" for peer in base.values()]
            cells.append([method, f"{row['ms']:.0f}", *gains, f"{row['sent'] / 1e6:.2f}"])
        size = next(iter(rows.values()))["parameters"] / 1e6
        heads = ["method", "ms a step", "FSDP2 float32 / this", "FSDP2 bf16 / this"]
        heads += ["MB sent"]
        title = f"GPT, {size:.1f} million weights, {nodes} emulated nodes at {rate}, "
        record.table(heads, cells, f"{title}dilation {dilation:g}", rate)
    if loss_steps:
        compare_losses(record, args)
    record.save()


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
    heads = ["method", *(f"seed {seed}" for seed in args.seeds.split()), "to float32"]
    record.table(heads, cells, f"mean loss of the last {LAST} of {args.loss_steps} steps", "losses")
