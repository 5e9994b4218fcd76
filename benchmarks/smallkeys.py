"""What many small gradients cost beside one of the same total size, in processor time and in time.

A step pushes and pulls `--keys` gradients of `--elements` each, all there at once, or one gradient
of their total size. Both run as jobs of `--nodes` workers on this machine's loopback, by topology
and codec. *CPU* is what all workers and servers take together for a step; variants take turns.

    python benchmarks/smallkeys.py --keys 160 --elements 16384

With ``--trainer``, steps of MXNet's Gluon Trainer with so many parameters (or a ``--model``'s):
on HiPress, on MXNet's own store, and without a store, which is what MXNet itself takes.

    python benchmarks/smallkeys.py --trainer --elements 1024
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
from hipress.simulator import models  # noqa: E402

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
    servers = args.nodes if TOPOLOGIES[topology].needs_servers else 0
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


def run_trainer(kvstore: str, where: str, codec: str, sizes: list[int], args) -> dict[str, float]:  # noqa: ANN001
    """CPU of all processes and elapsed milliseconds of a Trainer's step, on servers."""
    command = [sys.executable, str(HERE / "kvnode.py"), "--kvstore", kvstore, "--trainer", where]
    command += ["--shapes", json.dumps([[size] for size in sizes])]
    command += ["--compression", json.dumps(CODECS[codec] if codec != "none" else {})]
    command += ["--iterations", "3", "--in-a-row", str(max(1, args.iterations // 3))]
    env = dict(pair.split("=", 1) for pair in args.env)
    if kvstore == "none":
        workers = jobs.run_alone(command, args.nodes, env, 180, args.priority)
    else:
        workers = jobs.run_kvstore_job(
            command, args.nodes, args.nodes, "hipress" in kvstore, None, env, timeout=180,
            priority=args.priority,
        )  # fmt: skip
    seconds = jobs.iteration_seconds(workers, "in_a_row")
    return {"cpu": 1e3 * max(found["cpu"] for found in workers), "ms": 1e3 * min(seconds),
            "median ms": 1e3 * statistics.median(seconds)}  # fmt: skip


def compare_trainers(args: argparse.Namespace) -> None:
    """Prints and saves what steps of a Trainer take, by where its optimizer runs."""
    sizes = [args.elements] * args.keys
    if args.model:
        sizes = [layer.size for layer in models.load(args.model).layers]
    kinds = [("none", "none"), ("dist_sync", "none")]
    kinds += [("dist_sync_hipress", codec) for codec in args.codecs]
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    machine = jobs.machine()
    for _ in range(args.rounds):
        for where in args.where:
            for kvstore, codec in kinds:
                turn = run_trainer(kvstore, where, codec, sizes, args)
                found.setdefault((where, kvstore, codec), []).append(turn)
    table = Table(title=f"A Trainer's step: {len(sizes)} keys, {sum(sizes):,} elements, "
                  f"{args.nodes} workers", title_justify="left")  # fmt: skip
    for name in ("optimizer on", "kvstore", "ms", "median", "CPU ms", "CPU us a key, store alone"):
        table.add_column(name, justify="right" if name[0] != "o" and name != "kvstore" else "left")
    rows = []
    for (where, kvstore, codec), turns in found.items():
        best = {what: min(turn[what] for turn in turns) for what in turns[0]}
        plain = min(turn["cpu"] for turn in found[where, "none", "none"])
        each = 1e3 * (best["cpu"] - plain) / len(sizes) / args.nodes
        rows.append({"where": where, "kvstore": kvstore, "codec": codec, **best})
        table.add_row(where, f"{kvstore} {codec}", f"{best['ms']:.1f}", f"{best['median ms']:.1f}",
                      f"{best['cpu']:.1f}", f"{each:.1f}")  # fmt: skip
    Console(width=110).print(table)
    jobs.save("trainersteps", {"machine": machine, "sizes": sizes, "rows": rows})


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
    parser.add_argument("--trainer", action="store_true", help="steps of MXNet's Gluon Trainer")
    parser.add_argument("--where", nargs="*", default=["workers", "kvstore"], help="optimizers")
    parser.add_argument("--priority", action="store_true", help="the Trainer's before other work")
    parser.add_argument("--model", help="a model's gradients for the Trainer, such as resnet50")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    if args.quick:
        args.rounds, args.iterations = 1, 8
    if args.trainer:
        return compare_trainers(args)
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
