"""Steps of MXNet's Gluon Trainer: with HiPress, with MXNet's store, and without a store.

The last is what MXNet itself takes. The Trainer has `--keys` parameters of `--elements` each, or a
`--model`'s; the optimizer runs on the workers or in the kvstore. On this machine's loopback.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Env, Nodes, Priority, Quick, Rounds, variables
from benchmarks.common.results import Record
from benchmarks.kvstore.smallkeys import CODECS, best
from hipress.simulator import models


def run(
    kvstore: str,
    where: str,
    codec: str,
    sizes: list[int],
    nodes: int,
    iterations: int,
    env: str,
    priority: bool,
) -> dict[str, float]:
    """Return the processor milliseconds of all processes and the elapsed ones of a step."""
    command = jobs.node(
        "kvstore.node",
        kvstore=kvstore,
        trainer=where,
        shapes=[[size] for size in sizes],
        compression=CODECS[codec] if codec != "none" else {},
        iterations=3,
        in_a_row=max(1, iterations // 3),
    )
    if kvstore == "none":
        workers = jobs.separate_job(command, nodes, variables(env), 180, priority)
    else:
        workers = jobs.kvstore_job(
            command, nodes, nodes, None, variables(env), 180, "hipress" in kvstore, priority
        )
    seconds = jobs.slowest(workers, "in_a_row")
    return {
        "cpu": 1e3 * max(found["cpu"] for found in workers),
        "ms": 1e3 * min(seconds),
        "median ms": 1e3 * statistics.median(seconds),
    }


def main(
    nodes: Nodes = 4,
    keys: int = 160,
    elements: Annotated[int, typer.Option(help="Of each parameter.")] = 16384,
    model: Annotated[str, typer.Option(help="Its gradients instead, such as resnet50.")] = "",
    codecs: str = "none tbq",
    where: Annotated[str, typer.Option(help="Optimizers run.")] = "workers kvstore",
    iterations: int = 20,
    rounds: Rounds = 2,
    env: Env = "",
    priority: Priority = False,
    quick: Quick = False,
) -> None:
    if quick:
        nodes, rounds, iterations, where, keys = 2, 1, 3, "workers", 20
    record = Record("trainersteps", locals())
    sizes = [elements] * keys
    if model:
        sizes = [layer.size for layer in models.load(model).layers]
    kinds = [("none", "none"), ("dist_sync", "none")]
    kinds += [("dist_sync_hipress", codec) for codec in codecs.split()]
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for place in where.split():
            for kvstore, codec in kinds:
                turn = run(kvstore, place, codec, sizes, nodes, iterations, env, priority)
                found.setdefault((place, kvstore, codec), []).append(turn)
    cells = []
    for (place, kvstore, codec), turns in found.items():
        least = best(turns)
        alone = min(turn["cpu"] for turn in found[place, "none", "none"])
        each = 1e3 * (least["cpu"] - alone) / len(sizes) / nodes
        figures = (least["ms"], least["median ms"], least["cpu"], each)
        cells.append([place, f"{kvstore} {codec}", *(f"{value:.1f}" for value in figures)])
    heads = ["optimizer on", "kvstore", "ms", "median", "CPU ms", "CPU us a key, store alone"]
    title = f"A Trainer's step: {len(sizes)} keys, {sum(sizes):,} elements, {nodes} workers"
    record.table(heads, cells, title)
    record["rows"] = [{"variant": kind, "turns": turns} for kind, turns in found.items()]
    record.save()
