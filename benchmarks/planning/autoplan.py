"""``plan: 'auto'`` and compression of all or no gradients, in shaped networks (needs root).

Models: VGG19's gradients, each a tenth of its size (14 M elements); ResNet50's, where those of more
than 4,096 elements have a tenth of their size (106 of its 161 are of BatchNorm layers); one of many
small gradients and a few large ones; and one of many tiny ones, such as narrow layers' biases and
scales. All gradients of a step are pushed in one call, or with `--separately` in a call each. A
time is that of a step in the fastest block of ten steps in a row, and in brackets in the median
block. Blocks begin when the plan has been tried, and are between two of its checks. A check takes
longer than a step and is rare in training.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Priority, Quick, Rates, Rounds
from benchmarks.common.results import Record
from harness import netns
from hipress.simulator import models


@dataclass
class Variant(jobs.Variant):
    """Compression parameters of a model's synchronization, and the plan that auto found."""

    params: dict[str, Any] = field(default_factory=dict)
    plans: list[Any] = field(default_factory=list)
    """Elements from which plan auto compressed."""


def sizes() -> dict[str, dict[str, int]]:
    """Return the elements of each gradient, by model."""
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


def main(
    rates: Rates = "100mbit 1gbit",
    model: Annotated[list[str], typer.Option(help="Default: all.")] = [],  # noqa: B006
    nodes: Nodes = 4,
    topology: str = "colocated",
    codec: Annotated[str, typer.Option(help="JSON.")] = '{"type": "tbq", "threshold": 0.5}',
    rounds: Rounds = 2,
    separately: Annotated[
        bool, typer.Option("--separately", help="A call for each gradient.")
    ] = False,
    dilation: Dilation = 1.0,
    priority: Priority = False,
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        rates, rounds, model = rates.split()[0], 1, model or ["400 tiny, 3 large"]
    record = Record("autoplan", locals())
    known = sizes()
    params = json.loads(codec)
    cells, rows = [], []
    for rate in rates.split():
        with netns.ShapedNetwork(nodes, rate, verify=False, dilation=dilation) as network:
            for name in model or known:
                gradients = list(known[name].values())

                def run(row: Variant, gradients=gradients, network=network) -> None:
                    command = jobs.node(
                        "graphs.node",
                        sizes=gradients,
                        together=not separately,
                        warmup=17,
                        blocks=3,
                        compression={**row.params, "topology": topology},
                        iterations=0,
                    )
                    found = jobs.kvstore_job(
                        command, nodes, 0, network, timeout=180, boot=False, priority=priority
                    )
                    row.seconds += jobs.slowest(found, "in_a_row", network)
                    if row.name == "auto":
                        row.plans.append((found[0]["plan"] or {}).get("min_size"))

                modes = [
                    Variant("none", params={"type": "none"}),
                    Variant("all", params={**params, "min_size": 0}),
                    Variant("auto", params={**params, "plan": "auto"}),
                ]
                jobs.take_turns(rounds, modes, run)
                rows += [{"model": name, "rate": rate, **vars(mode)} for mode in modes]
                times = [(min(mode.seconds), mode.median) for mode in modes if mode.seconds]
                if len(times) < len(modes):
                    continue
                ratios = [auto / min(none, every) for none, every, auto in zip(*times)]
                shown = [f"{1e3 * least:.1f} ({1e3 * usual:.1f})" for least, usual in times]
                cells.append([name, rate, *shown, "{:.2f} ({:.2f})".format(*ratios)])
    title = f"one step in ms, {nodes} nodes, topology {topology}, {params['type']}, "
    heads = ["model", "rate", "none", "all", "auto", "auto / better of both"]
    record.table(heads, cells, f"{title}dilation {dilation:g}")
    record["rows"] = rows
    record.save()
