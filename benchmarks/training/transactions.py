"""Cost of steps that can be rolled back: time and processor time, with and without transactions.

Every rank is a process on this machine. Both kinds of step take turns in the same processes.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Output, Priority, Quick, Rounds
from benchmarks.common.results import Record


def main(
    compression: Annotated[str, typer.Option(help="Types.")] = "onebit dgc none",
    mebibytes: Annotated[int, typer.Option(min=1, help="Of float32 gradients.")] = 64,
    ranks: Annotated[int, typer.Option(min=1)] = 1,
    rounds: Rounds = 20,
    steps: Annotated[int, typer.Option(min=1, help="Of each kind in a round.")] = 5,
    priority: Priority = False,
    output: Output = "transactions",
    quick: Quick = False,
) -> None:
    if quick:
        compression, mebibytes, rounds, steps = "onebit", 4, 2, 2
    record = Record(output, locals())
    rows = []
    for kind in compression.split():
        command = jobs.node(
            "training.transactions_node", type=kind, mebibytes=mebibytes, rounds=rounds, steps=steps
        )
        found = jobs.reports(jobs.torch_job(command, ranks, priority=priority))
        record[kind] = found
        for what in ("wall", "processor"):
            without, within = (
                statistics.median(max(each) for each in zip(*(rank[mode][what] for rank in found)))
                for mode in ("without", "with")
            )
            numbers = [f"{1e3 * seconds:.2f}" for seconds in (without, within)]
            rows.append([kind, what, *numbers, f"{100 * (within / without - 1):+.1f} %"])
    heads = ["type", "time", "without, ms", "with, ms", "difference"]
    title = f"{mebibytes} MiB of float32, {ranks} ranks on one machine, medians of {rounds} rounds"
    record.table(heads, rows, title)
    record.save()
