"""Push+pull of one 64 MiB float32 gradient: HiPress, stock MXNet 1.9.1 and Gloo in the same run.

Two set-ups: "loopback", 2 workers and 2 servers on this machine; "shaped", 4 nodes in network
namespaces, each with a worker and a server (needs root). Every variant is a fresh cluster of
processes. The time of an iteration is its slowest worker's, from a barrier to the last byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Env, Only, Priority, Quick, Rate, Rounds, variables
from benchmarks.common.results import Record, console, setting, verdict
from harness import netns

ELEMENTS = 16 * 1024 * 1024  # 64 MiB of float32
NODES = {"loopback": 2, "shaped": 4}
PEERS = ("MXNet", "MXNet 2bit", "Gloo float32", "Gloo bfloat16")
# Claims: (set-up, ours, peer, at least this many times as fast). The peers do not encrypt, so the
# comparison is without TLS. Rows with TLS are also measured.
CLAIMS = [("loopback", "HiPress", "MXNet", 3.0), ("loopback", "HiPress 2bit", "MXNet 2bit", 10.0)]
CLAIMS += [
    ("shaped", f"HiPress {codec}, no TLS", peer, wanted)
    for peer, wanted in (("MXNet 2bit", 8.0), ("Gloo float32", 8.0), ("Gloo bfloat16", 4.0))
    for codec in ("2bit", "onebit")
]


@dataclass
class Variant(jobs.Variant):
    """System that synchronizes the gradient ("hipress", "mxnet" or "gloo"), and its options."""

    system: str = ""
    compression: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    cast: bool = False
    tls: bool = True
    topology: str = ""
    """Topology; empty: the store's default with servers."""
    wire_bytes: float | None = None

    def run(
        self,
        network: netns.ShapedNetwork | None,
        nodes: int,
        priority: bool,
        variables: dict[str, str],
        **counts: int,
    ) -> None:
        """Measure one repetition. The environment variables apply to HiPress's processes."""
        if self.system == "gloo":
            elements = counts.pop("elements")
            command = jobs.node(
                "allreduce.node", elements=elements, dtype=self.dtype, cast=self.cast, **counts
            )
            found = jobs.reports(jobs.torch_job(command, nodes, network, priority=priority))
        else:
            ours = self.system == "hipress"
            command = jobs.node(
                "kvstore.node",
                kvstore="dist_sync_hipress" if ours else "dist_sync",
                shapes=[[counts.pop("elements")]],
                compression=self.compression,
                dtype=self.dtype,
                test_results=True,
                **counts,
            )
            env = {"HIPRESS_TOPOLOGY": self.topology, **variables}
            if not self.tls:
                env["HIPRESS_TLS"] = "off"
            found = jobs.kvstore_job(
                command, nodes, nodes, network, env, boot=ours, priority=priority
            )
        self.seconds += jobs.slowest(found, network=network)
        if any(worker["wrong"] for worker in found):
            self.error = f"wrong results: {[worker['wrong'] for worker in found]}"
        if stats := found[0]["stats"]:
            total = stats["data_bytes_sent"] + stats["data_bytes_received"]
            self.wire_bytes = total / counts["iterations"]


def variants(setup: str, only: str) -> list[Variant]:
    """Return all rows. Thresholds suit the workers' gradients of standard deviation 1."""
    two_bit, onebit = {"type": "2bit", "threshold": 0.5}, {"type": "onebit"}
    rows = [
        Variant("MXNet", system="mxnet"),
        Variant("MXNet float16", system="mxnet", dtype="float16"),
        Variant("MXNet 2bit", system="mxnet", compression=two_bit),
        Variant("Gloo float32", system="gloo"),
        Variant("Gloo float16", system="gloo", dtype="float16"),
        Variant("Gloo bfloat16", system="gloo", dtype="bfloat16"),
        Variant("Gloo bfloat16, casts included", system="gloo", dtype="bfloat16", cast=True),
        Variant("HiPress", system="hipress"),
        Variant("HiPress float16", system="hipress", dtype="float16"),
        Variant("HiPress 2bit", system="hipress", compression=two_bit),
        Variant("HiPress onebit", system="hipress", compression=onebit),
        Variant("HiPress 1bit", system="hipress", compression={"type": "1bit"}),
    ]
    if setup == "shaped":
        rows += [
            Variant("HiPress, ring", system="hipress", topology="ring"),
            Variant("HiPress 2bit, no TLS", system="hipress", compression=two_bit, tls=False),
            Variant("HiPress onebit, no TLS", system="hipress", compression=onebit, tls=False),
        ]
    return [row for row in rows if jobs.matches(only, row)]


def show(record: Record, rows: Sequence[Variant], setup: str, title: str) -> None:
    """Add the table of times, and the ratios to the peers."""
    by_name = {row.name: row for row in rows if row.seconds}
    peers = [by_name[name] for name in PEERS if name in by_name]
    cells = [
        [
            row.name,
            f"{row.median * 1e3:.1f}",
            f"{row.wire_bytes / 1e6:.2f}" if row.wire_bytes else "",
            *(f"{peer.median / row.median:.2f}" for peer in peers),
        ]
        for row in by_name.values()
    ]
    heads = ["", "ms", "MB on a worker's wire"]
    record.table([*heads, *(f"against {peer.name}" for peer in peers)], cells, title)
    for where, ours, peer, wanted in CLAIMS:
        if where == setup and {ours, peer} <= set(by_name):
            ratio = by_name[peer].median / by_name[ours].median
            text = f"{ours} is {ratio:.2f}x as fast as {peer} (wanted: {wanted:g}x)"
            verdict(ratio >= wanted, text)


def main(
    setup: str = "both",
    rounds: Rounds = 3,
    warmup: int = 2,
    iterations: int = 7,
    elements: int = ELEMENTS,
    rate: Rate = "1gbit",
    dilation: Dilation = 1.0,
    priority: Priority = False,
    only: Only = "",
    env: Env = "",
    quick: Quick = False,
) -> None:
    if quick:
        rounds, warmup, iterations, elements = 1, 1, 2, min(elements, 1 << 18)
        only = only or "^(MXNet 2bit|Gloo float32|HiPress 2bit)$"
    counts = {"elements": elements, "warmup": warmup, "iterations": iterations}
    well = True
    for name in ["loopback", "shaped"] if setup == "both" else [setup]:
        if name == "shaped" and netns.available():
            console.print(f"[yellow]no shaped set-up: {netns.available()}[/]")
            continue
        options = {"rate": rate, "dilation": dilation, "rounds": rounds, "env": env, **counts}
        suffix = setting(rate, dilation) if name == "shaped" else name
        record = Record(f"pushpull-{suffix}", options)
        rows = variants(name, only)
        where = "2 workers + 2 servers on loopback"
        with contextlib.ExitStack() as stack:
            network = None
            if name == "shaped":
                shaped = netns.ShapedNetwork(4, rate=rate, dilation=dilation, verify=not quick)
                network = stack.enter_context(shaped)
                record["measured_bits_per_second"] = network.measured_bits_per_second
                where = f"4 nodes at {rate}, dilation {dilation:g}"

            def run(row: Variant, network=network, nodes=NODES[name]) -> None:
                row.run(network, nodes, priority, variables(env), **counts)

            well &= jobs.take_turns(rounds, rows, run)
        record["rows"] = [vars(row) for row in rows]
        show(record, rows, name, f"push+pull of {elements / 2**18:g} MiB float32, {where}")
        record.save()
    raise typer.Exit(not well)
