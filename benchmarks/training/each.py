"""Type "auto", each method that it may choose, and training without HiPress.

PyTorch: all methods' models of a setup (a model, a network, processors shared or not) are in one
job, and take turns of a few steps, so that a slow phase of the machine affects all. MXNet: a job
for each method, repeatedly in turns; stores have as many servers as workers. A step's time is its
slowest worker's. A table has medians, and the ratio of the best other method's time to `auto`'s,
turn by turn, with the median's 95% confidence interval. Methods that take three times as long as
the fastest after two turns (MXNet: one) stop. A second table shows the error of `explain()`'s
predictions: a step by another method is `auto`'s step plus the difference of the gradients alone.
Without dilation all nodes share this machine's processors. With a dilation of the number of nodes,
each has them for itself. VGG and ResNet train with SGD, the GPT and the LSTM with Adam. Needs root.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.intervals import median_interval
from benchmarks.common.options import Nodes, Output, Priority, Quick, Rates
from benchmarks.common.results import Record
from benchmarks.training.node import ALONE, AUTO, LAGGING
from harness import netns
from harness.netns import ShapedNetwork
from hipress.autotune.methods import BF16_HOOK, UNCOMPRESSED

BY_ANY = "maxmin:bits=8 maxmin:bits=6 maxmin:bits=5"
BY_SGD = "maxminef:bits=4 maxminef:bits=3 maxminef:bits=2"
PEERS = {"torch": ("float32", "fp16"), "mxnet": ("stock",)}
OURS = {
    "torch": (f"{BY_ANY} hipress.bf16", f"{BY_SGD} hipress.powersgd:rank=4"),
    "mxnet": (f"none bf16 {BY_ANY}", BY_SGD),
}
"""Methods that `auto` may choose: with any optimizer, and with SGD in addition."""
NAMES = {"torch": "PyTorch", "mxnet": "MXNet"}
ADAMS = ("gpt", "lstm")
METHOD_NAMES = {
    "float32": UNCOMPRESSED.name,
    "none": UNCOMPRESSED.name,
    "fp16": BF16_HOOK.name,
}
"""Names of `auto` for methods that have other names there."""
MODELS = {"torch": "vgg resnet gpt", "mxnet": "vgg resnet lstm"}
WARMUP = 2


def main(
    framework: Annotated[str, typer.Option(help="torch or mxnet.")] = "torch",
    models: Annotated[str, typer.Option(help="vgg, resnet, gpt (PyTorch), lstm (MXNet).")] = "",
    rates: Rates = "10gbit 1gbit 250mbit",
    dilations: Annotated[str, typer.Option(help="Of time.")] = "1 4",
    methods: Annotated[str, typer.Option(help="Default: all that are safe.")] = "",
    nodes: Nodes = 4,
    turns: Annotated[int, typer.Option(min=2, help="MXNet: jobs of each method.")] = 8,
    block: Annotated[int, typer.Option(min=1, help="Steps of a turn.")] = 3,
    timeout: float = 900,
    priority: Priority = False,
    add: Annotated[
        list[Path], typer.Option(help="JSON of earlier runs, whose setups come first.")
    ] = [],  # noqa: B006
    output: Output = "each",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        models, rates, dilations, nodes, turns, block = "vgg", rates.split()[0], "1", 2, 2, 1
        methods = f"{ALONE} {PEERS[framework][0]} {AUTO}"
    record = Record(output, locals())
    earlier = [json.loads(path.read_text()) for path in add]
    record["setups"] = sum((of["setups"] for of in earlier), [])
    for model in (models or MODELS[framework]).split():
        by_any, by_sgd = OURS[framework]
        safe = [ALONE, *PEERS[framework], by_any, "" if model in ADAMS else by_sgd, AUTO]
        names = methods.split() or " ".join(safe).split()
        for dilation, rate in itertools.product(map(float, dilations.split()), rates.split()):
            setup = {"framework": framework, "model": model, "rate": rate, "dilation": dilation}
            with ShapedNetwork(nodes, rate, dilation=dilation) as network:
                job = _Job(model, network, turns, block, timeout, priority)
                setup["methods"] = (job.torch if framework == "torch" else job.mxnet)(names)
            record["setups"].append(setup)
            print(" | ".join(row_of(setup)), flush=True)
            record.save()
    heads = [
        "",
        "nothing sent",
        "best without HiPress",
        "best by hand",
        "`auto`",
        "times as fast as that",
        "as without HiPress",
    ]
    record.table(heads, list(map(row_of, record["setups"])), "Milliseconds a step")
    heads = ["", "setups", "ways", "median error", "95% are within"]
    record.table(heads, predicted(record["setups"]), "Steps that are predicted", "predicted")
    record.save()


@dataclass
class _Job:
    """Measurement of one setup: seconds of each method's steps in each turn, and auto's choice.

    Seconds are without dilation.
    """

    model: str
    network: ShapedNetwork
    turns: int
    block: int
    timeout: float
    priority: bool

    def torch(self, names: Sequence[str]) -> dict[str, Any]:
        steps = {"steps": self.turns * self.block - WARMUP, "warmup": WARMUP, "block": self.block}
        command = jobs.node(
            "training.node",
            model=self.model,
            methods=list(names),
            late=0,
            seed=0,
            batch_size=1,
            context=16,
            **steps,
        )
        network = self.network
        results = jobs.torch_job(command, network.nodes, network, self.timeout, self.priority)
        reports = jobs.reports(results)
        found: dict[str, Any] = {}
        for name in names:
            of = [each for each in reports if each["method"] == name]
            seconds = jobs.slowest(of, network=network)
            starts = range(self.block, len(seconds), self.block)  # the first turn is a warm-up
            found[name] = {"turns": [seconds[at : at + self.block] for at in starts]}
            found[name] |= _choice(of[0])
        return found

    def mxnet(self, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {name: {"turns": []} for name in names}
        running = list(names)
        for turn in range(self.turns):
            for name in running[:: -1 if turn % 2 else 1]:
                of = self._gluon(name)
                found[name]["turns"].append(jobs.slowest(of, network=self.network))
                found[name] |= _choice(of[0])
            medians = {name: _median(found[name]) for name in running}
            limit = LAGGING * min(ms for name, ms in medians.items() if name != ALONE)
            running = [name for name in running if medians[name] < limit]
        return found

    def _gluon(self, name: str) -> jobs.Reports:
        command = jobs.node(
            "training.gluon_node", model=self.model, method=name, steps=self.block, warmup=WARMUP
        )
        env, workers = {**jobs.MALLOC, "OMP_NUM_THREADS": "1"}, self.network.nodes
        if name == ALONE:
            return jobs.separate_job(command, workers, env, self.timeout, self.priority)
        return jobs.kvstore_job(
            command,
            workers,
            workers,
            self.network,
            env,
            self.timeout,
            name not in PEERS["mxnet"],
            self.priority,
        )


def _choice(report: dict[str, Any]) -> dict[str, Any]:
    names = "way", "explanation", "gradients_ms"
    return {name: report[name] for name in names if report.get(name)}


def _median(of: dict[str, Any]) -> float:
    """Return the median milliseconds of a step."""
    return 1e3 * statistics.median(sum(of["turns"], []))


def row_of(setup: dict[str, Any]) -> list[str]:
    """Return a row of the table."""
    found = setup["methods"]
    ms = {name: _median(of) for name, of in found.items()}
    peer = min((name for name in ms if name in PEERS[setup["framework"]]), key=ms.get)
    hand = min((name for name in ms if name not in (ALONE, AUTO)), key=ms.get)
    processors = "own" if setup["dilation"] > 1 else "shared"
    return [
        f"{NAMES[setup['framework']]}, {setup['model']}, {setup['rate']}, {processors} processors",
        f"{ms[ALONE]:.0f}",
        f"{ms[peer]:.0f} ({peer})",
        f"{ms[hand]:.0f} ({hand.removeprefix('hipress.')})",
        f"{ms[AUTO]:.0f} ({found[AUTO]['way']})",
        *(_ratio(found[other]["turns"], found[AUTO]["turns"]) for other in (hand, peer)),
    ]


def predicted(setups: Sequence[dict[str, Any]]) -> list[list[object]]:
    """Return the second table's rows."""
    rows: list[list[object]] = []
    for framework, name in NAMES.items():
        of = [setup for setup in setups if setup["framework"] == framework]
        errors = sorted(abs(error) for setup in of for error in errors_of(setup))
        if errors:
            middle, most = statistics.median(errors), errors[math.ceil(0.95 * len(errors)) - 1]
            rows.append([name, len(of), len(errors), f"{middle:.1%}", f"{most:.1%}"])
    return rows


def errors_of(setup: dict[str, Any]) -> list[float]:
    """Return the relative errors of the predicted steps of methods that were not chosen."""
    found, auto = setup["methods"], setup["methods"][AUTO]
    alone, errors = auto.get("gradients_ms", {}), []
    for method, of in found.items():
        method_name = METHOD_NAMES.get(method, method.removeprefix("hipress.").replace(":", " "))
        if method_name in alone and method_name != auto["way"] and auto["way"] in alone:
            longer = (alone[method_name] - alone[auto["way"]]) / setup["dilation"]
            errors.append((_median(auto) + longer) / _median(of) - 1)
    return errors


def _ratio(other: list[list[float]], auto: list[list[float]]) -> str:
    """Return another method's time divided by auto's, with an interval if there are turns."""
    pairs = [statistics.median(b) / statistics.median(a) for b, a in zip(other, auto)]
    low, middle, high = median_interval(pairs)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})" if low < high else f"{middle:.2f}"
