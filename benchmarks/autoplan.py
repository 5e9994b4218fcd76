"""``plan: 'auto'`` against compressing everything and nothing, in shaped networks (needs root).

Two models: VGG19's gradients, each a tenth of its size (14 M elements), and one of many small
gradients and a few large ones. Variants take turns, `--rounds` times; a time is that of a step in
the fastest block of four steps in a row.

    python benchmarks/autoplan.py --rates 100mbit 1gbit
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import jobs
import netns

sys.path.insert(0, str(jobs.ROOT / "python"))

from hipress.simulator import models  # noqa: E402

HERE = Path(__file__).resolve().parent
TYPE = {"type": "tbq", "threshold": 0.5}
VARIANTS = {
    "none": {"type": "none"},
    "all": {**TYPE, "min_size": 0},
    "auto": {**TYPE, "plan": "auto"},
}


def sizes() -> dict[str, dict[str, int]]:
    """Elements by gradient, by model."""
    vgg = {layer.name: max(1, layer.size // 10) for layer in models.load("vgg19").layers}
    mixed = {f"small{i}": 1000 for i in range(150)}
    return {
        "vgg19 / 10": vgg,
        "150 small, 3 large": {**mixed, **{f"large{i}": 1_500_000 for i in range(3)}},
    }


def seconds(
    network: netns.ShapedNetwork, gradients: dict[str, int], params: dict, topology: str
) -> float:
    """Of a step in the fastest of some blocks."""
    command = [sys.executable, str(HERE / "graphnode.py")]
    command += ["--sizes", json.dumps(list(gradients.values()))]
    command += ["--compression", json.dumps({**params, "topology": topology}), "--warmup", "1"]
    command += ["--iterations", "0", "--blocks", "4", "--in-a-row", "4"]
    found = jobs.run_kvstore_job(
        command, network.nodes, 0, True, network, timeout=180, all_roles=True
    )
    return min(jobs.iteration_seconds(found, "in_a_row", network))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="*", default=["100mbit", "1gbit"])
    parser.add_argument("--models", nargs="*", default=list(sizes()))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--topology", default="colocated")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    netns.add_dilation(parser)
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    netns.require()
    if args.quick:
        args.rates, args.rounds = args.rates[:1], 1
    table = Table(title=f"one step in ms, {args.nodes} nodes, topology {args.topology}")
    for name in ("model", "rate", *VARIANTS, "auto / better of both"):
        table.add_column(name, justify="left" if name == "model" else "right")
    machine, rows = jobs.machine(), []
    for rate in args.rates:
        shape = {"rate": rate, "verify": False, "dilation": args.dilation}
        with netns.ShapedNetwork(args.nodes, **shape) as network:
            for model in args.models:
                gradients = sizes()[model]
                best = dict.fromkeys(VARIANTS, float("inf"))
                for _ in range(args.rounds):
                    for name, params in VARIANTS.items():
                        found = seconds(network, gradients, params, args.topology)
                        best[name] = min(best[name], found)
                ratio = best["auto"] / min(best["none"], best["all"])
                rows.append({"model": model, "rate": rate, **best, "ratio": ratio})
                cells = [f"{1e3 * value:.1f}" for value in best.values()]
                table.add_row(model, rate, *cells, f"{ratio:.2f}")
    Console(width=100).print(table)
    jobs.save("autoplan", {"machine": machine, "rows": rows})


if __name__ == "__main__":
    main()
