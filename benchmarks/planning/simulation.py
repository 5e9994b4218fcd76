"""Simulator and reality: predicted and measured step times in shaped networks.

`hipress profile` measures two nodes. From that profile the simulator predicts steps of 2, 4 and 8
nodes, with parameter servers (one on each worker's host) and in a ring, uncompressed and with two
codecs. Each step is then measured: real processes in network namespaces, whose links have the rate
`--rate`. It needs root. All nodes share this machine's processors, which the simulation includes.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Models, Quick, Rate
from benchmarks.common.results import Record, console
from harness import netns
from hipress.planning import profiles
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate

PAUSE = 0.05
"""Seconds before each step, so that shaped links let a burst pass, as predicted."""
MODELS = {
    # Large and small gradients, 4.2 M float32 elements, pushed one by one.
    "mixed": {
        **{f"conv{i}": 64_000 for i in range(8)},
        **{f"bias{i}": 512 for i in range(8)},
        **{f"middle{i}": 300_000 for i in range(4)},
        "dense0": 2_000_000,
        "dense1": 500_000,
    },
    # Mostly small gradients, which share messages, all pushed in one call. The large ones make
    # steps longer than a burst, because the bucket's level at a step's start is not simulated.
    "small": {
        **{f"scale{i}": 1_000 for i in range(200)},
        **{f"middle{i}": 300_000 for i in range(4)},
    },
}
TYPES = {"none": {}, "tbq": {"threshold": 0.5}, "onebit": {}}
# Short queue and small bucket: data sent after a pause must not exceed the rate.
SHAPE = {"burst": "64kb", "latency": 0.2, "verify": False}


def measure_profile(rate: str, folder: Path) -> Path:
    """Run `hipress profile` on two nodes."""
    path = folder / "profile.json"
    command = [sys.executable, "-m", "hipress", "profile", "--output", str(path)]
    for name in TYPES:
        if name != "none":
            params = ",".join(f"{k}={v}" for k, v in TYPES[name].items())
            command += ["--type", f"{name}:{params}" if params else name]
    command += ["--largest", str(1 << 20)]
    with netns.ShapedNetwork(2, rate=rate, **SHAPE) as network:
        jobs.kvstore_job(command, 2, 0, network, timeout=300, boot=False)
    return path


def measured_seconds(
    network: netns.ShapedNetwork, model: str, topology: str, kind: str, iterations: int
) -> float:
    """Return the seconds of the fastest of some steps, because other programs use this machine."""
    params = {"type": kind, "topology": topology, "min_size": 0, **TYPES[kind]}
    if kind == "none":  # takes long, and depends only on the network
        iterations = min(iterations, 3)
    command = jobs.node(
        "graphs.node",
        sizes=list(MODELS[model].values()),
        together=model == "small",
        compression=params,
        warmup=1,
        iterations=iterations,
        pause=PAUSE,
    )
    servers = network.nodes if topology == "ps" else 0
    found = jobs.kvstore_job(command, network.nodes, servers, network, timeout=180, boot=False)
    return min(jobs.slowest(found))


def predicted_seconds(profile: Path, model: str, topology: str, kind: str, nodes: int) -> float:
    """Return the simulator's prediction of the same step, with all gradients ready at once."""
    loaded = profiles.load(profile)
    costs = loaded.costs(kind)
    layers = tuple(Layer(name, size) for name, size in MODELS[model].items())
    zeros = (0.0,) * len(layers)
    net = Model(model, "", 1, layers, zeros, zeros)
    options = Options(topology, nodes, symmetric=False)
    return simulate(net, costs, loaded.cluster(), options).seconds


def main(
    rate: Rate = "50mbit",
    networks: Models = "mixed small",
    nodes: str = "2 4 8",
    topologies: str = "ps ring",
    types: str = "none tbq onebit",
    iterations: int = 10,
    profile: Annotated[Path, typer.Option(help="Use this one instead of measuring.")] = None,
    keep_profile: Annotated[Path, typer.Option(help="Write the measured one here.")] = None,
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        nodes, iterations, networks, topologies, types = "2", 2, "mixed", "ring", "tbq"
    record = Record("simulation", locals())
    rows = []
    with tempfile.TemporaryDirectory(prefix="hipress-simulation-") as folder:
        profile = profile or measure_profile(rate, Path(folder))
        record["profile"] = json.loads(profile.read_text())
        if keep_profile:
            keep_profile.write_text(profile.read_text())
        for count in map(int, nodes.split()):
            with netns.ShapedNetwork(count, rate=rate, **SHAPE) as network:
                cells = itertools.product(networks.split(), topologies.split(), types.split())
                for model, topology, kind in cells:
                    real = measured_seconds(network, model, topology, kind, iterations)
                    guess = predicted_seconds(profile, model, topology, kind, count)
                    rows.append((model, topology, count, kind, real, guess, guess / real))
                    console.print(f"[dim]{rows[-1]}[/]", highlight=False)
    heads = [
        "model",
        "topology",
        "nodes",
        "codec",
        "measured ms",
        "predicted ms",
        "predicted/measured",
    ]
    cells = [
        [*row[:4], f"{1e3 * row[4]:.1f}", f"{1e3 * row[5]:.1f}", f"{row[6]:.2f}"] for row in rows
    ]
    record.table(heads, cells, f"one step, {rate} links: predicted from a profile of two nodes")
    worst = max(max(row[-1], 1 / row[-1]) for row in rows)
    console.print(f"largest deviation: {worst - 1:.0%}")
    record["rows"] = rows
    record.save()
