"""Throughput of all-reduces over several connections per node, by congestion control.

Four nodes sum one gradient over links of each rate, by `maxmin` of 8 bits and uncompressed, with
each of `--controls`. Gloo's bfloat16, a ring with one connection per direction, uses the system's.
*Share* is the payload's share of the link's rate. Needs root.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rates, Rounds
from benchmarks.common.results import Record
from harness import netns

BYTES = {"maxmin": 1.0, "none": 4.0, "bfloat16": 2.0}
"""Bytes per element in messages."""
COMPRESSIONS = {"maxmin": {"type": "maxmin", "bits": 8}, "none": {}}


def main(
    rates: Rates = "100mbit 1gbit",
    controls: Annotated[str, typer.Option(help="As the kernel names them.")] = "bbr cubic reno",
    topologies: str = "colocated ring",
    nodes: Nodes = 4,
    elements: int = 16 << 20,
    steps: int = 5,
    rounds: Rounds = 2,
    dilation: Dilation = 1.0,
    priority: Priority = False,
    output: Output = "congestion",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        rates, controls, topologies = "1gbit", "reno", "colocated"
        nodes, elements, steps, rounds = 2, 1 << 16, 1, 1
    args = SimpleNamespace(**locals())
    record = Record(output, vars(args))
    well, cells, record["rows"] = True, [], []
    for rate in rates.split():
        rows = [
            Variant(
                f"{topology}, {kind}, {control}",
                topology=topology,
                kind=kind,
                env={"HIPRESS_CONGESTION_CONTROL": control},
            )
            for topology, kind, control in itertools.product(
                topologies.split(), COMPRESSIONS, controls.split()
            )
        ] + [Variant("Gloo, bfloat16", kind="bfloat16")]
        with netns.ShapedNetwork(nodes, rate, dilation=dilation) as network:
            well = jobs.take_turns(rounds, rows, lambda row: row.run(args, network)) and well
        measured = network.measured_bits_per_second or netns.bits_per_second(rate)
        for row in rows:
            carried = 8 * BYTES[row.kind] * elements * 2 * (nodes - 1) / nodes
            share = carried / measured / row.median
            cells.append([f"{rate}, {row.name}", f"{1e3 * row.median:.0f}", f"{share:.0%}"])
        record["rows"] += [{"rate": rate, **vars(row)} for row in rows]
    record.table(["", "ms", "share"], cells, f"{elements} elements, {nodes} nodes")
    record.save()
    raise typer.Exit(not well)


@dataclass
class Variant(jobs.Variant):
    """Row of the table."""

    topology: str = ""
    """Topology; empty: Gloo's."""
    kind: str = "none"
    env: dict[str, str] = field(default_factory=dict)

    def run(self, args: SimpleNamespace, network: netns.ShapedNetwork) -> None:
        """Run one repetition."""
        options = {"warmup": 1, "iterations": args.steps, "blocks": 0}
        if self.topology:
            command = jobs.node(
                "graphs.node", sizes=[args.elements], compression=COMPRESSIONS[self.kind], **options
            )
            env = {"HIPRESS_TOPOLOGY": self.topology, "HIPRESS_TLS": "off", **self.env}
            found = jobs.kvstore_job(command, args.nodes, 0, network, env, priority=args.priority)
        else:
            command = jobs.node(
                "allreduce.node", elements=args.elements, dtype=self.kind, **options
            )
            found = jobs.reports(
                jobs.torch_job(command, args.nodes, network, priority=args.priority)
            )
        self.seconds += jobs.slowest(found, network=network)
