"""What uncompressed sums make of a long, fast link that loses packets, over TLS.

Two nodes or more sum keys, in the wide-area network that `--wan` describes (harness/wan.py; needs
root). *Share* is that of the link's rate which the payload of these sums takes, in steps in a row,
as in training; headers of IP and TCP take 3.5% of a link with packets of 1,500 bytes. *Streams* are
the sockets of a connection (`HIPRESS_STREAMS`), `auto` how many the transport opens by itself.
"""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rounds, Wan
from benchmarks.common.results import Record
from harness import netns
from harness.wan import WideAreaNetwork
from hipress.casync import TOPOLOGIES


def main(
    wan: Wan = "rate=1gbit,delay=50ms,loss=0.1%",
    nodes: Nodes = 2,
    topology: str = "colocated",
    streams: Annotated[str, typer.Option(help="Numbers, or auto.")] = "1 auto",
    keys: int = 16,
    elements: Annotated[int, typer.Option(help="Of each key.")] = 4 << 20,
    warmup: Annotated[int, typer.Option(help="Steps, in which TCP finds the link's rate.")] = 3,
    in_a_row: Annotated[int, typer.Option(help="Steps.")] = 4,
    rounds: Rounds = 1,
    dilation: Dilation = 1.0,
    priority: Priority = False,
    output: Output = "longlinks",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        elements, warmup, in_a_row, streams = 1 << 18, 1, 1, "auto"
    args = SimpleNamespace(**locals())
    record = Record(output, vars(args))
    rows = [jobs.Variant(name) for name in streams.split()]
    with WideAreaNetwork(nodes, wan, dilation) as network:
        well = jobs.take_turns(rounds, rows, lambda row: run(args, network, row))
        sent = 4 * keys * elements * 2 * (nodes - 1) / nodes  # bytes up from, and down to, a node
        rate = network.link(0).up
        cells = [
            [row.name, f"{row.median:.2f}", f"{8e-6 * sent / row.median:.0f}",
             f"{sent / row.median / rate:.0%}" if rate else ""]
            for row in rows
        ]  # fmt: skip
    title = f"{nodes} nodes, {wan}, {sent / 1e6:.0f} MB a step each way, dilation {dilation:g}"
    record.table(["streams", "s a step", "Mbit/s", "share"], cells, title)
    record["rows"] = [vars(row) for row in rows]
    record.save()
    raise typer.Exit(not well)


def run(args: SimpleNamespace, network: WideAreaNetwork, row: jobs.Variant) -> None:
    """One round of a row."""
    command = jobs.node(
        "graphs.node", sizes=[args.elements] * args.keys, iterations=0, blocks=1,
        warmup=args.warmup, in_a_row=args.in_a_row,
    )  # fmt: skip
    servers = args.nodes if TOPOLOGIES[args.topology].needs_servers else 0
    env = {"HIPRESS_TOPOLOGY": args.topology, "HIPRESS_STREAMS": row.name.replace("auto", "0")}
    found = jobs.kvstore_job(
        command, args.nodes, servers, network, env, 600, priority=args.priority
    )  # fmt: skip
    row.seconds.append(statistics.fmean(jobs.slowest(found, "in_a_row", network)))
