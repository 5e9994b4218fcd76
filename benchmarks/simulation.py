"""The simulator against reality: predicted beside measured step times in shaped networks.

`hipress profile` measures two nodes; from that profile the simulator predicts steps of 2, 4 and 8
nodes, with parameter servers (one beside each worker) and as a ring, uncompressed and with two
codecs. Each is then measured: real processes in network namespaces, whose links carry `--rate`.
Needs root. All nodes share this machine's processors, which the simulation knows.

    python benchmarks/simulation.py --rate 50mbit
    python benchmarks/simulation.py --keep-profile profile.json --models small --nodes 8 --types tbq
    python benchmarks/simulation.py --profile profile.json --models small --nodes 8 --types onebit
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import jobs
from jobs import netns

sys.path.insert(0, str(jobs.ROOT / "python"))

from hipress.secopa import profiles  # noqa: E402
from hipress.simulator.models import Layer, Model  # noqa: E402
from hipress.simulator.step import Options, simulate  # noqa: E402

PAUSE = 0.05
"""Seconds before each step, in which shaped links come to let a burst pass, as is predicted."""
HERE = Path(__file__).resolve().parent
MODELS = {
    # Large and small gradients, 4.2 M float32 elements, pushed one by one.
    "mixed": {
        **{f"conv{i}": 64_000 for i in range(8)},
        **{f"bias{i}": 512 for i in range(8)},
        **{f"middle{i}": 300_000 for i in range(4)},
        "dense0": 2_000_000,
        "dense1": 500_000,
    },
    # Mostly small ones, which share messages; all pushed in one call. The large ones make steps
    # longer than what passes at once: how full the bucket is at a step's start is not simulated.
    "small": {
        **{f"scale{i}": 1_000 for i in range(200)},
        **{f"middle{i}": 300_000 for i in range(4)},
    },
}
TYPES = {"none": {}, "tbq": {"threshold": 0.5}, "onebit": {}}
# A short queue and a small bucket: what is sent after a pause must not go faster than the rate.
SHAPE = {"burst": "64kb", "latency": 0.2, "verify": False}


def measure_profile(rate: str, folder: Path) -> Path:
    """Runs `hipress profile` on two nodes."""
    path = folder / "profile.json"
    command = [sys.executable, "-m", "hipress", "profile", "--output", str(path)]
    for name in TYPES:
        if name != "none":
            params = ",".join(f"{k}={v}" for k, v in TYPES[name].items())
            command += ["--type", f"{name}:{params}" if params else name]
    command += ["--largest", str(1 << 20)]
    with netns.ShapedNetwork(2, rate=rate, **SHAPE) as network:
        jobs.run_kvstore_job(command, 2, 0, True, network, timeout=300, all_roles=True)
    return path


def measured_seconds(
    network: netns.ShapedNetwork, model: str, topology: str, kind: str, iterations: int
) -> float:
    """Seconds of the fastest of some steps: others may use this machine, too."""
    params = {"type": kind, "topology": topology, "min_size": 0, **TYPES[kind]}
    command = [sys.executable, str(HERE / "graphnode.py")]
    command += ["--sizes", json.dumps(list(MODELS[model].values()))]
    command += ["--together"] if model == "small" else []
    if kind == "none":  # takes long, and depends on the network alone
        iterations = min(iterations, 3)
    command += ["--compression", json.dumps(params), "--warmup", "1"]
    command += ["--iterations", str(iterations), "--pause", str(PAUSE)]
    servers = network.nodes if topology == "ps" else 0
    found = jobs.run_kvstore_job(
        command, network.nodes, servers, True, network, timeout=180, all_roles=True
    )
    return min(jobs.iteration_seconds(found))


def predicted_seconds(profile: Path, model: str, topology: str, kind: str, nodes: int) -> float:
    """What the simulator says of the same step: all gradients are there at once."""
    loaded = profiles.load(profile)
    costs = loaded.costs(kind)
    layers = tuple(Layer(name, size) for name, size in MODELS[model].items())
    zeros = (0.0,) * len(layers)
    net = Model(model, "", 1, layers, zeros, zeros)
    options = Options(topology, nodes, symmetric=False)
    return simulate(net, costs, loaded.cluster(), options).seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="50mbit")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--nodes", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--topologies", nargs="*", default=["ps", "ring"])
    parser.add_argument("--types", nargs="*", default=list(TYPES), choices=list(TYPES))
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--profile", type=Path, help="use this one instead of measuring")
    parser.add_argument("--keep-profile", type=Path, help="write the measured profile here")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    netns.require()
    if args.quick:
        args.nodes, args.iterations = [2, 4], 3
    console = Console(width=110)
    table = Table(title=f"one step, {args.rate} links: predicted from a profile of two nodes")
    left = ("model", "topology", "codec")
    for name in (*left[:2], "nodes", left[2], "measured ms", "predicted ms", "predicted/measured"):
        table.add_column(name, justify="left" if name in left else "right")
    rows = []
    with tempfile.TemporaryDirectory(prefix="hipress-simulation-") as folder:
        profile = args.profile or measure_profile(args.rate, Path(folder))
        if args.keep_profile:
            args.keep_profile.write_text(profile.read_text())
        for nodes in args.nodes:
            with netns.ShapedNetwork(nodes, rate=args.rate, **SHAPE) as network:
                cells = itertools.product(args.models, args.topologies, args.types)
                for model, topology, kind in cells:
                    real = measured_seconds(network, model, topology, kind, args.iterations)
                    guess = predicted_seconds(profile, model, topology, kind, nodes)
                    rows.append((model, topology, nodes, kind, real, guess, guess / real))
                    cell = (model, topology, str(nodes), kind)
                    times = (f"{1e3 * real:.1f}", f"{1e3 * guess:.1f}", f"{guess / real:.2f}")
                    table.add_row(*cell, *times)
                    print(*cell, *times, file=sys.stderr, flush=True)
        result = {
            "machine": jobs.machine(),
            "rate": args.rate,
            "profile": json.loads(profile.read_text()),
            "rows": rows,
        }
    console.print(table)
    worst = max(max(row[-1], 1 / row[-1]) for row in rows)
    console.print(f"largest deviation: {worst - 1:.0%}")
    jobs.save("simulation", result)


if __name__ == "__main__":
    main()
