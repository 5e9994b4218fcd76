#!/usr/bin/env python3
"""Times push+pull of a real network's gradients: HiPress and stock MXNet side by side.

Starts both clusters on this machine's loopback, one after the other, `--rounds` times in turns.
Every worker pushes all gradients, last layer first, pulls them, and waits for all.

    python tools/bandwidth/measure.py -n 2 -s 2 --network resnet50 --type none 2bit onebit
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

from networks import NETWORKS, elements, shapes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks.common import jobs  # noqa: E402

STOCK_TYPES = ("none", "2bit")  # what MXNet 1.9.1 offers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--num-workers", type=int, default=2)
    parser.add_argument("-s", "--num-servers", type=int, default=2)
    parser.add_argument("--network", default="resnet50", choices=list(NETWORKS))
    parser.add_argument("--type", nargs="+", default=["none", "2bit"], help="compression types")
    parser.add_argument("--threshold", type=float, default=0.5, help="of 2bit")
    parser.add_argument(
        "--min-size", type=int, help="HiPress leaves smaller gradients uncompressed (elements)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of every first dimension, 0 to 1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument(
        "--test-results", action="store_true", help="also check the values of the first pull"
    )
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one cluster")
    return parser.parse_args()


def compression(kind: str, ours: bool, args: argparse.Namespace) -> dict[str, Any]:
    """Return parameters for set_gradient_compression, which are empty for none."""
    if kind == "none":
        return {}
    params: dict[str, Any] = {"type": kind}
    if kind == "2bit":
        params["threshold"] = args.threshold
    if ours and args.min_size is not None:
        params["min_size"] = args.min_size
    return params


def run(
    kind: str, ours: bool, network: list[tuple[int, ...]], args: argparse.Namespace
) -> tuple[list[float], int]:
    """Run one cluster; return seconds of each iteration, and the number of wrong pulled values."""
    command = jobs.node(
        "kvstore.node",
        shapes=network,
        kvstore="dist_sync_hipress" if ours else "dist_sync",
        compression=compression(kind, ours, args),
        warmup=args.warmup,
        iterations=args.iterations,
        test_results=args.test_results,
    )
    workers, servers = args.num_workers, args.num_servers
    found = jobs.kvstore_job(command, workers, servers, timeout=args.timeout, boot=ours)
    return jobs.slowest(found), sum(worker["wrong"] for worker in found)


def main() -> int:
    args = arguments()
    console = Console(width=None if sys.stdout.isatty() else 120)
    network = shapes(args.network, args.scale)
    size = 4 * elements(network)
    rows = [(kind, False) for kind in args.type if kind in STOCK_TYPES]
    rows += [(kind, True) for kind in args.type]
    seconds: dict[tuple[str, bool], list[float]] = {row: [] for row in rows}
    wrong = dict.fromkeys(rows, 0)
    try:
        for round_ in range(args.rounds):
            for kind, ours in rows:
                name = "HiPress" if ours else "MXNet"
                console.print(f"[dim]round {round_ + 1}/{args.rounds}: {name} {kind}[/]")
                times, count = run(kind, ours, network, args)
                seconds[kind, ours] += times
                wrong[kind, ours] += count
    except jobs.JobError as error:
        console.print(f"[red]failed:[/] {error}", highlight=False)
        return 1
    table = Table(
        title=f"push+pull of {args.network}: {len(network)} float32 gradients, "
        f"{size / 1e6:.1f} MB; {args.num_workers} workers, {args.num_servers} servers",
        title_justify="left",
    )
    heads = ["median ms", "min ms", "GB/s of gradient", "x MXNet, same type", "x MXNet none"]
    heads += ["wrong values"] if args.test_results else []
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right")
    median = {row: statistics.median(times) for row, times in seconds.items()}
    for kind, ours in rows:
        mine = median[kind, ours]

        def ratio(peer: tuple[str, bool], mine: float = mine) -> str:
            return f"{median[peer] / mine:.2f}" if peer in median else ""

        cells = [f"{mine * 1e3:.1f}", f"{min(seconds[kind, ours]) * 1e3:.1f}"]
        cells += [f"{size / mine / 1e9:.2f}", ratio((kind, False)), ratio(("none", False))]
        cells += [str(wrong[kind, ours])] if args.test_results else []
        table.add_row(f"{'HiPress' if ours else 'MXNet'} {kind}", *cells)
    console.print(table)
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
