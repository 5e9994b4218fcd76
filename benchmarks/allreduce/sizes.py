"""`hipress bench allreduce` on shaped links: float32, bfloat16 and compressed all-reduces by size.

Every node is a network namespace with one process. Needs root.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rates, Wan
from benchmarks.common.results import Record, console
from harness import netns
from harness.wan import linked


def main(
    rates: Rates = "1gbit",
    wan: Wan = "",
    nodes: Nodes = 4,
    compression: Annotated[str, typer.Option(help="Types.")] = "onebit maxmin",
    largest: str = "64M",
    iterations: int = 5,
    dilation: Dilation = 1.0,
    priority: Priority = False,
    output: Output = "allreduce",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        nodes, compression, largest, iterations = 2, "onebit", "256K", 2
    record = Record(output, locals())
    record["printed"] = {}
    for rate in [wan] if wan else rates.split():
        with linked(nodes, rate, dilation) as network:
            for kind in compression.split():
                command = [sys.executable, "-m", "hipress", "bench", "allreduce", "-b", "64K"]
                command += ["-e", largest, "-f", "4", "-n", str(iterations), "-w", "2", "-c", kind]
                found = jobs.torch_job(command, nodes, network, 300, priority)[0].output
                console.print(f"\n{rate}, dilation {dilation:g} (times are not divided by it)")
                print(found, flush=True)
                record["printed"][f"{rate} {kind}"] = found
    record.save()
