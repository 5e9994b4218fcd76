"""``plan: 'auto'`` against compressing everything and nothing, in shaped networks (needs root).

Models: VGG19's gradients, each a tenth of its size (14 M elements); ResNet50's, of which those of
more than 4,096 elements are a tenth of theirs (106 of its 161 are of BatchNorm layers); one of many
small gradients and a few large ones; and one of many tiny ones, as of narrow layers' biases and
scales. All gradients of a step are pushed in one call (`--apart`: each in one of its own).
Variants take turns, `--rounds` times; a time is that of a step in the fastest block of ten steps
in a row, and in brackets in the median block. They begin when the plan has been tried, and lie
between two of its checks of itself, which take longer than a step and come ever more rarely in
training.

    python benchmarks/autoplan.py --rates 100mbit 1gbit
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
from jobs import netns

sys.path.insert(0, str(jobs.ROOT / "python"))

from hipress.simulator import models  # noqa: E402

HERE = Path(__file__).resolve().parent


def variants(codec: dict) -> dict[str, dict]:
    """Compression parameters by variant."""
    return {
        "none": {"type": "none"},
        "all": {**codec, "min_size": 0},
        "auto": {**codec, "plan": "auto"},
    }


def sizes() -> dict[str, dict[str, int]]:
    """Elements by gradient, by model."""
    vgg = {layer.name: max(1, layer.size // 10) for layer in models.load("vgg19").layers}
    mixed = {f"small{i}": 1000 for i in range(150)}
    return {
        "vgg19 / 10": vgg,
        "resnet50, large ones / 10": {
            layer.name: layer.size if layer.size <= 4096 else layer.size // 10
            for layer in models.load("resnet50").layers
        },
        "150 small, 3 large": {**mixed, **{f"large{i}": 1_500_000 for i in range(3)}},
        "400 tiny, 3 large": {
            **{f"tiny{i}": 64 for i in range(400)},
            **{f"large{i}": 250_000 for i in range(3)},
        },
    }


def seconds(
    network: netns.ShapedNetwork, gradients: dict[str, int], params: dict, args: argparse.Namespace
) -> tuple[list[float], object]:
    """Of a step in each of some blocks; and from how many elements on plan auto compressed then."""
    command = [sys.executable, str(HERE / "graphnode.py")]
    command += ["--sizes", json.dumps(list(gradients.values()))]
    command += ["--compression", json.dumps({**params, "topology": args.topology})]
    command += ["--warmup", "17", "--iterations", "0", "--blocks", "3", "--in-a-row", "10"]
    command += [] if args.apart else ["--together"]
    found = jobs.run_kvstore_job(
        command, network.nodes, 0, True, network, timeout=180, all_roles=True,
        priority=args.priority,
    )  # fmt: skip
    plan = found[0]["plan"] or {}
    return jobs.iteration_seconds(found, "in_a_row", network), plan.get("min_size")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="*", default=["100mbit", "1gbit"])
    parser.add_argument("--models", nargs="*", default=list(sizes()))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--topology", default="colocated")
    parser.add_argument(
        "--codec", type=json.loads, default={"type": "tbq", "threshold": 0.5}, help="JSON"
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="a call for each gradient")
    parser.add_argument("--priority", action="store_true", help="before this machine's other work")
    parser.add_argument("--quick", action="store_true")
    netns.add_dilation(parser)
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    netns.require()
    if args.quick:
        args.rates, args.rounds = args.rates[:1], 1
    modes = variants(args.codec)
    title = f"one step in ms, {args.nodes} nodes, topology {args.topology}, {args.codec['type']}"
    title += f", dilation {args.dilation:g}"
    table = Table(title=title)
    for name in ("model", "rate", *modes, "auto / better of both"):
        table.add_column(name, justify="left" if name == "model" else "right")
    machine, rows = jobs.machine(), []
    for rate in args.rates:
        shape = {"rate": rate, "verify": False, "dilation": args.dilation}
        with netns.ShapedNetwork(args.nodes, **shape) as network:
            for model in args.models:
                gradients = sizes()[model]
                found: dict[str, list[float]] = {name: [] for name in modes}
                plans = []  # of auto
                for _ in range(args.rounds):
                    for name, params in modes.items():
                        blocks, plan = seconds(network, gradients, params, args)
                        found[name] += blocks
                        plans += [plan] if name == "auto" else []
                both = {name: (min(s), statistics.median(s)) for name, s in found.items()}
                ratios = [
                    auto / min(none, every)
                    for none, every, auto in zip(*(both[name] for name in modes), strict=True)
                ]
                rows.append({"model": model, "rate": rate, **found, "plans": plans,
                             "ratios": ratios})  # fmt: skip
                cells = [f"{1e3 * least:.1f} ({1e3 * usual:.1f})" for least, usual in both.values()]
                table.add_row(model, rate, *cells, "{:.2f} ({:.2f})".format(*ratios))
    Console(width=100).print(table)
    jobs.save("autoplan", {"machine": machine, "codec": args.codec, "dilation": args.dilation,
                           "rows": rows})  # fmt: skip


if __name__ == "__main__":
    main()
