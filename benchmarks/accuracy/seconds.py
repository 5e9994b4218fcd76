"""Seconds of training until a test accuracy is reached, on 4 nodes with 1 Gbit/s links.

The demo's network and data, with a dense layer of 2,048 units (2.2 million weights, 8.7 MB of
gradients) so that the network matters, as for real models. HiPress and stock MXNet run the same
script in the same namespaces. float16 gradients, the usual simple remedy, are included.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Annotated

import typer

from benchmarks.accuracy import digits
from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Only, Priority, Quick, Rate, Seeds
from benchmarks.common.results import Record, console, setting
from harness import netns
from harness.netns import ShapedNetwork

PEERS = ("MXNet", "MXNet 2bit", "HiPress float16")


@dataclass
class Row(jobs.Variant):
    """One way to train: the script's arguments, and the results of the runs."""

    options: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    tests: list[list[tuple[float, float]]] = field(default_factory=list)  # of each run: s, accuracy
    missed: int = 0

    def train(
        self, options: list[str], target: float, network: ShapedNetwork, priority: bool
    ) -> None:
        """Run one job until the target, and add its time."""
        ours = self.name.startswith("HiPress")
        store = ["--kvstore", "dist_sync_hipress" if ours else "dist_sync"]
        tests, _ = digits.train([*self.options, *store, *options], 4, ours, network, priority)
        self.tests.append([(network.seconds(test["seconds"]), test["accuracy"]) for test in tests])
        if tests[-1]["accuracy"] < target:
            self.missed += 1
        else:
            self.seconds.append(network.seconds(tests[-1]["seconds"]))
            self.steps.append(tests[-1]["step"])


def rows() -> list[Row]:
    half = ["--dtype", "float16"]
    two_bit = ["--type", "2bit", *digits.demo.SETTINGS["2bit"]]
    return [
        Row("MXNet"),
        Row("MXNet float16", options=half),
        # MXNet's own kvstore refuses compression in a Trainer.
        Row("MXNet 2bit", options=[*two_bit, "--push-pull"]),
        Row("HiPress"),
        Row("HiPress float16", options=half),
        Row("HiPress 2bit", options=two_bit),
        Row("HiPress onebit", options=["--type", "onebit"]),
        Row("HiPress 1bit", options=["--type", "1bit"]),
    ]


def main(
    target: Annotated[float, typer.Option(help="Test accuracy, 0 to 1.")] = 0.97,
    seeds: Seeds = "0 1 2",
    epochs: Annotated[int, typer.Option(help="At most; sets the schedule, too.")] = 15,
    hidden: int = 2048,
    learning_rate: float = 0.1,
    rate: Rate = "1gbit",
    dilation: Dilation = 1.0,
    priority: Priority = False,
    only: Only = "",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        seeds, epochs, hidden, target, only = "0", 1, 64, 0.5, only or "^(MXNet|HiPress 2bit)$"
    record = Record(f"time-to-accuracy-{setting(rate, dilation)}", locals())
    table = [row for row in rows() if jobs.matches(only, row)]
    with ShapedNetwork(4, rate=rate, dilation=dilation, verify=not quick) as network:
        for seed in seeds.split():
            options = ["--seed", seed, "--epochs", str(epochs), "--target", str(target)]
            options += ["--hidden", str(hidden), "--learning-rate", str(learning_rate)]
            for row in table:
                row.train(options, target, network, priority)
                shown = f"{row.seconds[-1]:.2f} s" if row.seconds else "missed"
                console.print(f"[dim]seed {seed}, {row.name}: {shown}[/]")
    median = {row.name: row.median for row in table if row.seconds}
    cells = []
    for row in table:
        line = [row.name]
        if row.seconds:
            line += [
                f"{row.median:.2f}",
                f"{statistics.median(row.steps):.0f}",
                f"{1e3 * sum(row.seconds) / sum(row.steps):.0f}",
            ]
            line += [f"{median[peer] / row.median:.2f}" if peer in median else "" for peer in PEERS]
        cells.append([*line, *[""] * (7 - len(line)), row.missed or ""])
    heads = ["", "seconds", "steps", "ms a step", *(f"against {peer}" for peer in PEERS), "missed"]
    title = f"Seconds to {100 * target:g} % test accuracy, 4 nodes at {rate}, "
    record.table(heads, cells, f"{title}dilation {dilation:g}, median of the seeds {seeds}")
    record["rows"] = [vars(row) for row in table]
    record.save()
