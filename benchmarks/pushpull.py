"""Push+pull of one 64 MiB float32 gradient: HiPress, stock MXNet 1.9.1 and Gloo in the same run.

Two set-ups: ``loopback``, 2 workers and 2 servers on this machine; ``shaped``, 4 nodes in network
namespaces whose links carry 1 Gbit/s, each with a worker and a server (needs root). Every variant
is a fresh cluster of processes; variants take turns, `--rounds` times, so that noise meets them
all. The time of an iteration is its slowest worker's, from a barrier to the last byte.

    python benchmarks/pushpull.py
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import jobs
from jobs import netns

HERE = Path(__file__).resolve().parent
ELEMENTS = 16 * 1024 * 1024  # 64 MiB of float32
OURS, STOCK = "dist_sync_hipress", "dist_sync"


@dataclass
class Variant:
    """One row: who synchronises the gradient, and how."""

    name: str
    system: str  # "hipress", "mxnet" or "gloo"
    compression: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    cast: bool = False
    env: dict[str, str] = field(default_factory=dict)
    setups: tuple[str, ...] = ("loopback", "shaped")
    seconds: list[float] = field(default_factory=list)
    wire_bytes: float | None = None
    error: str = ""

    def command(self, args: argparse.Namespace) -> list[str]:
        """What each worker runs."""
        count = ["--warmup", str(args.warmup), "--iterations", str(args.iterations)]
        if self.system == "gloo":
            command = [sys.executable, str(HERE / "gloonode.py"), *count]
            command += ["--elements", str(args.elements), "--dtype", self.dtype]
            return command + (["--cast"] if self.cast else [])
        return [
            *(sys.executable, str(HERE / "kvnode.py"), *count, "--dtype", self.dtype),
            *("--kvstore", OURS if self.system == "hipress" else STOCK),
            *("--shapes", json.dumps([[args.elements]])),
            *("--compression", json.dumps(self.compression), "--test-results"),
        ]

    @property
    def median(self) -> float:
        """Seconds; NaN if nothing was measured."""
        return statistics.median(self.seconds) if self.seconds else float("nan")


def variants() -> list[Variant]:
    """All rows. Thresholds suit gradients of standard deviation 1, as the workers push."""
    two_bit = {"type": "2bit", "threshold": 0.5}
    shaped = ("shaped",)
    plain = {"HIPRESS_TLS": "off"}
    return [
        Variant("MXNet", "mxnet"),
        Variant("MXNet float16", "mxnet", dtype="float16"),
        Variant("MXNet 2bit", "mxnet", two_bit),
        Variant("Gloo float32", "gloo"),
        Variant("Gloo float16", "gloo", dtype="float16"),
        Variant("Gloo bfloat16", "gloo", dtype="bfloat16"),
        Variant("Gloo bfloat16, casts included", "gloo", dtype="bfloat16", cast=True),
        Variant("HiPress", "hipress"),
        Variant("HiPress float16", "hipress", dtype="float16"),
        Variant("HiPress 2bit", "hipress", two_bit),
        Variant("HiPress onebit", "hipress", {"type": "onebit"}),
        Variant("HiPress 1bit", "hipress", {"type": "1bit"}),
        Variant("HiPress 2bit, no TLS", "hipress", two_bit, env=plain, setups=shaped),
        Variant("HiPress onebit, no TLS", "hipress", {"type": "onebit"}, env=plain, setups=shaped),
    ]


# What we claim: (set-up, ours, peer, at least this many times as fast).
CLAIMS = [
    ("loopback", "HiPress", "MXNet", 3.0),
    ("loopback", "HiPress 2bit", "MXNet 2bit", 10.0),
    # The peers do not encrypt, so the comparison is without; the rows with TLS stand beside them.
    ("shaped", "HiPress 2bit, no TLS", "MXNet 2bit", 8.0),
    ("shaped", "HiPress onebit, no TLS", "MXNet 2bit", 8.0),
    ("shaped", "HiPress 2bit, no TLS", "Gloo float32", 8.0),
    ("shaped", "HiPress onebit, no TLS", "Gloo float32", 8.0),
    ("shaped", "HiPress 2bit, no TLS", "Gloo bfloat16", 4.0),
    ("shaped", "HiPress onebit, no TLS", "Gloo bfloat16", 4.0),
]
PEERS = ("MXNet", "MXNet 2bit", "Gloo float32", "Gloo bfloat16")


def measure(
    rows: Sequence[Variant], setup: str, args: argparse.Namespace, console: Console
) -> float | None:
    """Runs all variants in turns; returns the shaped link's measured bits per second."""
    network = None
    if setup == "shaped":
        network = netns.ShapedNetwork(4, rate=args.rate, dilation=args.dilation)
    nodes = 4 if network else 2
    try:
        if network:
            network.__enter__()
        for round_ in range(args.rounds):
            for row in rows:
                if row.error:
                    continue
                console.print(f"[dim]{setup}, round {round_ + 1}/{args.rounds}: {row.name}[/]")
                try:
                    if row.system == "gloo":
                        found = jobs.reports(jobs.run_torch_job(row.command(args), nodes, network))
                    else:
                        found = jobs.run_kvstore_job(
                            row.command(args), nodes, nodes, row.system == "hipress", network,
                            row.env,
                        )  # fmt: skip
                except jobs.JobError as error:
                    row.error = str(error)
                    console.print(f"[red]{row.name}:[/] {error}", markup=True, highlight=False)
                    continue
                row.seconds += jobs.iteration_seconds(found, network=network)
                if any(worker["wrong"] for worker in found):
                    row.error = f"{row.name}: wrong results: {[w['wrong'] for w in found]}"
                stats = found[0]["stats"]
                if stats:
                    total = stats["data_bytes_sent"] + stats["data_bytes_received"]
                    row.wire_bytes = total / args.iterations
    finally:
        if network:
            network.close()
    return network.measured_bits_per_second if network else None


def table(rows: Sequence[Variant], title: str) -> Table:
    """Times and the ratios to the peers."""
    by_name = {row.name: row for row in rows}
    out = Table(title=title, title_justify="left")
    out.add_column("", no_wrap=True)
    for head in ("median ms", "min ms", "MB on a worker's wire"):
        out.add_column(head, justify="right")
    peers = [by_name[name] for name in PEERS if name in by_name and by_name[name].seconds]
    for peer in peers:
        out.add_column(f"x faster than {peer.name}", justify="right")
    for row in rows:
        if not row.seconds:
            out.add_row(row.name, "failed" if row.error else "-", *[""] * (2 + len(peers)))
            continue
        wire = f"{row.wire_bytes / 1e6:.2f}" if row.wire_bytes else ""
        ratios = [f"{peer.median / row.median:.2f}" for peer in peers]
        milliseconds = (f"{row.median * 1e3:.1f}", f"{min(row.seconds) * 1e3:.1f}")
        out.add_row(row.name, *milliseconds, wire, *ratios)
    return out


def verdicts(rows: Sequence[Variant], setup: str) -> list[dict[str, Any]]:
    """Each claim of this set-up with what was measured; claims without numbers are left out."""
    by_name = {row.name: row for row in rows}
    found = []
    for where, ours, peer, wanted in CLAIMS:
        if where != setup or ours not in by_name or peer not in by_name:
            continue
        ratio = by_name[peer].median / by_name[ours].median
        if ratio == ratio:
            found.append(
                {"ours": ours, "peer": peer, "wanted": wanted, "ratio": round(ratio, 2),
                 "holds": ratio >= wanted}
            )  # fmt: skip
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setup", choices=["loopback", "shaped", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=7)
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--only", default="", help="regular expression of variants' names")
    netns.add_dilation(parser)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    jobs.clean_up_when_terminated()
    console = Console(width=None if sys.stdout.isatty() else 150)
    setups = ["loopback", "shaped"] if args.setup == "both" else [args.setup]
    if "shaped" in setups and netns.available():
        console.print(f"[yellow]no shaped set-up: {netns.available()}[/]")
        setups.remove("shaped")
    broken = False
    for setup in setups:
        rows = [row for row in variants() if setup in row.setups and re.search(args.only, row.name)]
        machine = jobs.machine()
        bits = measure(rows, setup, args, console)
        megabytes = args.elements * 4 / 2**20
        where = "2 workers + 2 servers on loopback" if setup == "loopback" else (
            f"4 nodes at {args.rate} (measured {bits / 1e6:.0f} Mbit/s), "
            f"dilation {args.dilation:g}")  # fmt: skip
        console.print(table(rows, f"push+pull of {megabytes:g} MiB float32, {where}"))
        claims = verdicts(rows, setup)
        for claim in claims:
            mark = "[green]holds[/]" if claim["holds"] else "[red]missed[/]"
            console.print(
                f"{mark}: {claim['ours']} is {claim['ratio']:.2f}x as fast as {claim['peer']} "
                f"(wanted: {claim['wanted']:g}x)"
            )
        record = {
            "machine": machine,
            "setup": {"name": setup, "elements": args.elements, "rate": args.rate,
                      "dilation": args.dilation if setup == "shaped" else 1.0,
                      "measured_bits_per_second": bits},
            "rows": [
                {"name": row.name, "median_ms": round(row.median * 1e3, 2) if row.seconds else None,
                 "ms": [round(value * 1e3, 2) for value in row.seconds],
                 "wire_bytes": row.wire_bytes, "error": row.error}
                for row in rows
            ],
            "claims": claims,
        }  # fmt: skip
        path = jobs.save(f"pushpull-{setup}", record)
        console.print(f"saved {path}")
        broken |= any(row.error for row in rows)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
