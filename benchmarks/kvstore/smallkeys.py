"""Many small gradients and one of the same total size: processor time and elapsed time.

A step pushes and pulls `--keys` gradients of `--elements` each, all ready at once, or one gradient
of their total size. Both run as jobs of `--nodes` workers on this machine's loopback, by topology
and codec. *CPU* is the time of all workers and servers for a step. Variants take turns.
"""

from __future__ import annotations

import statistics
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Env, Nodes, Quick, Rounds, variables
from benchmarks.common.results import Record
from hipress.topology import TOPOLOGIES

CODECS: dict[str, dict[str, Any]] = {
    "none": {"type": "none"},
    "tbq": {"type": "tbq", "threshold": 0.5, "min_size": 0},
    "onebit": {"type": "onebit", "min_size": 0},
}


def best(turns: list[dict[str, float]]) -> dict[str, float]:
    """Return the minimum of each figure."""
    return {what: min(turn[what] for turn in turns) for what in turns[0]}


def run(
    topology: str, codec: str, sizes: list[int], nodes: int, iterations: int, env: str
) -> dict[str, float]:
    """Return CPU and elapsed milliseconds of a step, and one worker's messages and writes."""
    command = jobs.node(
        "graphs.node",
        sizes=sizes,
        iterations=0,
        blocks=2,
        in_a_row=max(1, iterations // 2),
        compression=CODECS[codec],
        servers_cpu=True,
    )
    servers = nodes if TOPOLOGIES[topology].needs_servers else 0
    environment = {"HIPRESS_TOPOLOGY": topology, **variables(env)}
    workers = jobs.kvstore_job(command, nodes, servers, None, environment, timeout=60, boot=False)
    return {
        "cpu": 1e3 * sum(found["cpu"] + found["servers_cpu"] for found in workers),
        "ms": 1e3 * statistics.median(jobs.slowest(workers, "in_a_row")),
        "messages": workers[0]["stats"]["messages_sent"],
        "writes": workers[0]["stats"]["writes"],
    }


def main(
    nodes: Nodes = 4,
    keys: int = 160,
    elements: Annotated[int, typer.Option(help="Of each small gradient.")] = 16384,
    topologies: str = "ps colocated ring",
    codecs: str = "none tbq",
    iterations: Annotated[int, typer.Option(help="In two blocks without barriers.")] = 20,
    rounds: Rounds = 2,
    env: Env = "",
    quick: Quick = False,
) -> None:
    if quick:
        rounds, iterations, topologies, codecs = 1, 4, "ps colocated", "tbq"
    record = Record("smallkeys", locals())
    sizes = {"many": [elements] * keys, "one": [elements * keys]}
    cells, rows = [], []
    for topology in topologies.split():
        for codec in codecs.split():
            found: dict[str, list[dict[str, float]]] = {"many": [], "one": []}
            for _ in range(rounds):
                for name, turns in found.items():
                    turns.append(run(topology, codec, sizes[name], nodes, iterations, env))
            rows.append({"topology": topology, "codec": codec, **found})
            many, one = best(found["many"]), best(found["one"])
            line = [f"{topology} {codec}"]
            for what in ("cpu", "ms"):
                line += [f"{many[what]:.1f}", f"{one[what]:.1f}", f"{many[what] / one[what]:.1f}"]
            cells.append([*line, f"{many['messages']:.0f}", f"{many['writes']:.0f}"])
    heads = ["", "CPU ms: many", "one", "ratio", "ms: many", "one", "ratio", "messages", "writes"]
    title = f"{keys} gradients of {elements} elements beside one, {nodes} nodes"
    record.table(heads, cells, title)
    record["rows"] = rows
    record.save()
