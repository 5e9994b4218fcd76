"""What many small gradients cost beside one of the same total size, in processor time and in time.

A step pushes and pulls `--keys` gradients of `--elements` each, all there at once, or one gradient
of their total size. Both run as jobs of `--nodes` workers on this machine's loopback, by topology
and codec. *CPU* is what all workers and servers take together for a step; variants take turns.

    python benchmarks/smallkeys.py --keys 160 --elements 16384
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import jobs

sys.path.insert(0, str(jobs.ROOT / "python"))

from hipress.casync import TOPOLOGIES  # noqa: E402

HERE = Path(__file__).resolve().parent
CODECS = {
    "none": {"type": "none"},
    "tbq": {"type": "tbq", "threshold": 0.5, "min_size": 0},
    "onebit": {"type": "onebit", "min_size": 0},
}


def run(topology: str, codec: str, sizes: list[int], args: argparse.Namespace) -> dict[str, float]:
    """CPU and elapsed milliseconds of a step, and the messages and writes of one worker."""
    command = [sys.executable, str(HERE / "graphnode.py"), "--sizes", json.dumps(sizes)]
    command += ["--warmup", "3", "--iterations", "0", "--blocks", "2"]
    command += ["--in-a-row", str(max(1, args.iterations // 2))]
    command += ["--compression", json.dumps(CODECS[codec]), "--servers-cpu"]
    servers = args.nodes if TOPOLOGIES[topology].servers else 0
    env = {"HIPRESS_TOPOLOGY": topology, **dict(pair.split("=", 1) for pair in args.env)}
    workers = jobs.run_kvstore_job(
        command, args.nodes, servers, True, None, env, timeout=60, all_roles=True
    )
    return {
        "cpu": 1e3 * sum(found["cpu"] + found["servers_cpu"] for found in workers),
        "ms": 1e3 * statistics.median(jobs.iteration_seconds(workers, "in_a_row")),
        "messages": workers[0]["stats"]["messages_sent"],
        "writes": workers[0]["stats"]["writes"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--keys", type=int, default=160)
    parser.add_argument("--elements", type=int, default=16384, help="of each small gradient")
    parser.add_argument("--topologies", nargs="*", default=["ps", "colocated", "ring"])
    parser.add_argument("--codecs", nargs="*", default=["none", "tbq"], choices=list(CODECS))
    parser.add_argument("--iterations", type=int, default=20, help="in two blocks without barriers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--env", nargs="*", default=[], help="NAME=VALUE for all processes")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    if args.quick:
        args.rounds, args.iterations = 1, 8
    many, one = [args.elements] * args.keys, [args.elements * args.keys]
    title = f"{args.keys} gradients of {args.elements} elements beside one, {args.nodes} nodes"
    table = Table(title=title, title_justify="left")
    for name in ("", "CPU ms: many", "one", "ratio", "ms: many", "one", "ratio", "messages",
                 "writes"):
        table.add_column(name, justify="right" if name else "left")
    machine, rows = jobs.machine(), []
    for topology in args.topologies:
        for codec in args.codecs:
            found: dict[str, list[dict[str, float]]] = {"many": [], "one": []}
            for _ in range(args.rounds):
                found["many"].append(run(topology, codec, many, args))
                found["one"].append(run(topology, codec, one, args))
            best = {
                name: {what: min(turn[what] for turn in turns) for what in turns[0]}
                for name, turns in found.items()
            }
            rows.append({"topology": topology, "codec": codec, **best})
            a, b = best["many"], best["one"]
            cells = [f"{topology} {codec}"]
            for what in ("cpu", "ms"):
                cells += [f"{a[what]:.1f}", f"{b[what]:.1f}", f"{a[what] / b[what]:.1f}"]
            cells += [f"{a['messages']:.0f}", f"{a['writes']:.0f}"]
            table.add_row(*cells)
    Console(width=110).print(table)
    jobs.save("smallkeys", {"machine": machine, "rows": rows})


if __name__ == "__main__":
    main()
