"""Throughput of uncompressed sums over TLS on a long, fast link that loses packets.

Two nodes or more sum keys, in the wide-area network that `--wan` describes (harness/wan.py; needs
root). *Share* is the share of the link's rate that the payload of these sums has, in steps in a
row, as in training. Headers of IP and TCP take 3.5% of a link with packets of 1,500 bytes.
*Streams* are the sockets of a connection (`HIPRESS_STREAMS`); with `auto` the transport decides.
*Buffers* are the limits `net.ipv4.tcp_wmem` and `tcp_rmem` of each node. *Bare TCP* is the time of
the same bytes without HiPress and TLS, over one socket or several; of two nodes only.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated

import typer

from benchmarks.common import jobs, options
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Rounds
from benchmarks.common.results import Record
from harness import netns
from harness.wan import Wan, WideAreaNetwork
from hipress.topology import TOPOLOGIES


def main(
    wan: options.Wan = "rate=1gbit,delay=50ms,loss=0.1%",
    nodes: Nodes = 2,
    topology: str = "colocated",
    streams: Annotated[str, typer.Option(help="Numbers, or auto.")] = "1 auto",
    buffers: Annotated[
        str, typer.Option(help="Largest that each node's kernel allows, in MiB; 0: as here.")
    ] = "0 64",
    bare: Annotated[str, typer.Option(help="Sockets of bare TCP.")] = "1 8",
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
        elements, warmup, in_a_row, streams, buffers, bare = 1 << 18, 1, 1, "auto", "0", "8"
    args = SimpleNamespace(**locals())
    record = Record(output, vars(args))
    rows = [
        Variant(f"{name}, buffers {size} MiB", streams=name, buffers=int(size))
        for size in buffers.split()
        for name in streams.split()
    ]
    if nodes == 2:
        rows += [
            Variant(f"bare TCP, {count}, buffers {size} MiB", [], "", count, int(size), bare=True)
            for size in buffers.split()
            for count in bare.split()
        ]
    sent = 4 * keys * elements * 2 * (nodes - 1) // nodes  # bytes sent by, and received by, a node
    well = jobs.take_turns(rounds, rows, lambda row: run(args, row, sent))
    rate = Wan.read(wan).link.up
    cells = [
        [
            row.name,
            f"{row.median:.2f}",
            f"{8e-6 * sent / row.median:.0f}",
            f"{sent / row.median / rate:.0%}" if rate else "",
        ]
        for row in rows
    ]
    title = f"{nodes} nodes, {wan}, {sent / 1e6:.0f} MB a step each way, dilation {dilation:g}"
    record.table(["streams", "s a step", "Mbit/s", "share"], cells, title)
    record["rows"] = [vars(row) for row in rows]
    record.save()
    raise typer.Exit(not well)


@dataclass
class Variant(jobs.Variant):
    """Row of the table."""

    streams: str = "auto"
    buffers: int = 0
    """Buffer limit in MiB."""
    bare: bool = False
    """Whether it is TCP without HiPress."""


def run(args: SimpleNamespace, row: Variant, sent: int) -> None:
    """Run one repetition of a row, in whose steps each node sends so many bytes."""
    with WideAreaNetwork(args.nodes, args.wan, args.dilation) as network:
        if row.buffers:
            network.allow_buffers(row.buffers << 20)
        found = (bare_job if row.bare else job)(args, row, sent, network)
        row.seconds.append(statistics.fmean(jobs.slowest(found, "in_a_row", network)))


def bare_job(
    args: SimpleNamespace, row: Variant, sent: int, network: WideAreaNetwork
) -> jobs.Reports:
    """Run the same bytes over plain TCP."""
    command = jobs.node(
        "transport.bare_tcp",
        bytes=sent,
        sockets=int(row.streams),
        warmup=args.warmup,
        in_a_row=args.in_a_row,
    )
    return jobs.reports(jobs.torch_job(command, 2, network, 600, priority=args.priority))


def job(args: SimpleNamespace, row: Variant, sent: int, network: WideAreaNetwork) -> jobs.Reports:
    """Run sums of keys."""
    command = jobs.node(
        "graphs.node",
        sizes=[args.elements] * args.keys,
        iterations=0,
        blocks=1,
        warmup=args.warmup,
        in_a_row=args.in_a_row,
    )
    servers = args.nodes if TOPOLOGIES[args.topology].needs_servers else 0
    env = {"HIPRESS_TOPOLOGY": args.topology, "HIPRESS_STREAMS": row.streams.replace("auto", "0")}
    return jobs.kvstore_job(command, args.nodes, servers, network, env, 600, priority=args.priority)
