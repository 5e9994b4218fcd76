"""Difference between type "auto" and the best choice, in some 200 simulated setups.

Four networks on 2 to 64 nodes with links of 100 Mbit/s to 100 Gbit/s and codecs as fast as on a CPU
(benchmarks/results/codecs-speed.json, four threads) or on a GPU (assumed: memory traffic at 2 TB/s,
20 us to start). In each the autotuner (hipress.autotune) gets the simulator's times of gradients
alone, and of steps by DDP's own methods if it tries these. The best of an exhaustive search is the
fastest simulated step over all methods, in a ring and with co-located servers. Neighboring
gradients form buckets of 25 MiB or more, like DDP's. All networks except the GPT, which has Adam,
train with SGD; powersgd is not simulated. It needs no root, only a core for some minutes.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import time
from dataclasses import dataclass, replace

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import PUBLISHED, Record
from hipress.autotune.measurement import least_lossy
from hipress.autotune.trial import StepTrial
from hipress.base import units
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.simulator import models
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate

THREADS, START = 4, 5e-6
GPU_BYTES, GPU_START = 2e12, 20e-6
"""Bytes per second, and seconds to start, of a GPU's codec."""
BUCKET = 25 << 18
"""Minimum elements of a bucket."""
MERGED = 8
"""Payloads of a timed merge."""


@dataclass(frozen=True)
class CandidateMethod:
    """Method of synchronization, as in hipress.autotune.methods."""

    name: str
    bytes: float
    """Bytes of a payload, per element."""
    timed: str
    """Codec whose CPU times it has."""
    moved: float
    """Bytes that encoding reads and writes, per element."""
    own: bool = False
    """Whether it is DDP's own method: in a ring, and tried in steps of training."""
    feedback: bool = False


CANDIDATES = (
    CandidateMethod("uncompressed", 4.0, "none", 8.0, own=True),
    CandidateMethod("bf16", 2.0, "bf16", 6.0),
    CandidateMethod("DDP's bf16_compress_hook", 2.0, "bf16", 6.0, own=True),
    CandidateMethod("maxmin bits=8", 1.0 + 8 / 1024, "maxmin, 8 bits", 5.0),
    CandidateMethod("maxmin bits=6", 0.75 + 8 / 1024, "maxmin, 8 bits", 4.8),
    CandidateMethod("maxmin bits=5", 0.625 + 8 / 1024, "maxmin, 8 bits", 4.6),
    CandidateMethod("maxminef bits=4", 0.5 + 8 / 1024, "maxminef, 4 bits", 12.5, feedback=True),
    CandidateMethod("maxminef bits=3", 0.375 + 8 / 1024, "maxminef, 4 bits", 12.4, feedback=True),
    CandidateMethod("maxminef bits=2", 0.25 + 8 / 1024, "maxminef, 4 bits", 12.3, feedback=True),
)


def gpt2() -> Model:
    """Return GPT-2 small, 1024 tokens, at 40 of an A100's 312 TFLOP/s of 16 bits."""
    tokens, width, layers = 1024, 768, [Layer("embedding", 50257 * 768, 2.0 * 50257 * 768 * 1024)]
    layers.append(Layer("position", 1024 * width))
    for i in range(12):
        for name, size in (("qkv", 3), ("out", 1), ("up", 4), ("down", 4)):
            count = size * width * width
            layers.append(Layer(f"{i}_{name}", count, 2.0 * count * tokens))
        layers.append(Layer(f"{i}_norms_biases", 13 * width))
    forward = tuple(8 * layer.flops / 40e12 for layer in layers)
    return Model("gpt2", "", 8, tuple(layers), forward, tuple(2 * t for t in forward))


def bucketed(model: Model) -> Model:
    """Return the same network with neighboring gradients in buckets."""
    layers: list[Layer] = []
    forward, backward = [], []
    for layer, ahead, back in zip(model.layers, model.forward, model.backward):
        if layers and layers[-1].size < BUCKET:
            layers[-1] = Layer(layers[-1].name, layers[-1].size + layer.size)
            forward[-1] += ahead
            backward[-1] += back
        else:
            layers.append(Layer(layer.name, layer.size))
            forward.append(ahead)
            backward.append(back)
    times = {"forward": tuple(forward), "backward": tuple(backward)}
    return replace(model, layers=tuple(layers), **times)


def codecs(where: str) -> dict[str, Codec]:
    """Return the codecs of all methods, on a CPU or a GPU."""
    found = {}
    table = json.loads((PUBLISHED / "codecs-speed.json").read_text())["tables"][""]
    speeds = {row[0]: row for row in table["rows"]}
    heads = {name: table["heads"].index(name) for name in ("16 Mi: encode", "decode", "sum of 8")}

    def curve(seconds: float, start: float) -> Curve:
        return Curve(seconds, start, start)

    for method in CANDIDATES:
        if where == "cpu":
            encode, decode, merge = (
                4e-9 / float(speeds[method.timed][column]) for column in heads.values()
            )
            merge, start = merge / MERGED, START
        else:
            encode, decode, merge = (
                moved / GPU_BYTES for moved in (method.moved, 4 + method.bytes, method.bytes)
            )
            start = GPU_START
        parts = curve(encode, start), curve(decode, start), curve(merge, start)
        found[method.name] = Codec(method.name, method.bytes, 0.0, *parts)
    return found


class Setup:
    """Network on a cluster, for simulated steps."""

    def __init__(self, model: Model, nodes: int, rate: str, where: str) -> None:
        self.model, self.nodes, self.rate, self.where = model, nodes, rate, where
        self._codecs = codecs(where)
        threads = THREADS if where == "cpu" else 1
        self._cluster = Cluster(units.rate(rate), threads=threads)
        zeros = (0.0,) * len(model.layers)
        self._gradients = replace(model, forward=zeros, backward=zeros)
        self.methods = [
            method for method in CANDIDATES if model.name != "gpt2" or not method.feedback
        ]
        self._known: dict[tuple, float] = {}

    def seconds(self, method: CandidateMethod, topology: str = "", alone: bool = False) -> float:
        """Return the seconds of a step, or of its gradients alone.

        Args:
            way: The method.
            topology: By default that of jobs.
            alone: Whether to simulate gradients alone.
        """
        codec = self._codecs[method.name]
        topology = topology or ("ring" if method.own else "colocated")
        about = method.name, topology, alone
        if about not in self._known:
            self._known[about] = self._simulated(codec, topology, alone)
        return self._known[about]

    def _simulated(self, codec: Codec, topology: str, alone: bool) -> float:
        model = self._gradients if alone else self.model
        options = Options(topology, self.nodes, symmetric=True)
        return simulate(model, Costs(codec, codec), self._cluster, options).seconds

    def chosen(self) -> int:
        """Return the method that the autotuner chooses."""
        alone = [self.seconds(method, alone=True) for method in self.methods]
        number = least_lossy(alone)
        if not number:
            return number
        own = [each if method.own else math.inf for each, method in zip(alone, self.methods)]
        trial = StepTrial(own, number)
        steps: dict[int, float] = {}
        while not trial.over:
            steps.setdefault(trial.index, self.seconds(self.methods[trial.index]))
            median = trial.add(steps[trial.index])
            if median is not None:
                trial.end_block(median)
        return trial.index

    def search(self) -> dict[str, float]:
        """Return the seconds of a step by every method and topology."""
        return {
            f"{method.name}, {topology}": self.seconds(method, topology)
            for method in self.methods
            for topology in (("ring",) if method.own else ("colocated", "ring"))
        }


def main(
    nodes: str = "2 4 8 16 64",
    rates: str = "100mbit 1gbit 10gbit 25gbit 100gbit",
    output: Output = "setups",
    quick: Quick = False,
) -> None:
    nets = [models.load("vgg19"), gpt2(), models.load("resnet50"), models.load("lstm")]
    nets = [bucketed(net) for net in nets]
    if quick:
        nets, nodes, rates = nets[2:3], "4", "1gbit 100gbit"
    record, began = Record(output, {"nodes": nodes, "rates": rates}), time.perf_counter()
    record["setups"] = found = []
    for net, count, rate, where in itertools.product(
        nets, map(int, nodes.split()), rates.split(), ("cpu", "gpu")
    ):
        setup = Setup(net, count, rate, where)
        method, steps = setup.methods[setup.chosen()], setup.search()
        best = min(steps, key=steps.get)
        plain = min(s for name, s in steps.items() if name.startswith(("uncomp", "DDP's")))
        mine = steps[f"{method.name}, {'ring' if method.own else 'colocated'}"]
        found.append(
            {
                "model": net.name,
                "nodes": count,
                "rate": rate,
                "codecs": where,
                "auto": method.name,
                "best": best,
                "seconds": mine,
                "best_seconds": steps[best],
                "plain_seconds": plain,
            }
        )
    record["seconds"] = time.perf_counter() - began
    show(record, found)
    record.save()


def show(record: Record, found: list[dict]) -> None:
    """Add a table with a row for each value of each field, and one for all setups."""
    rows = []
    for name in ("", "model", "rate", "nodes", "codecs"):
        for value in dict.fromkeys(each.get(name, "all") for each in found):
            of = [each for each in found if each.get(name, "all") == value]
            over = sorted(100 * (each["seconds"] / each["best_seconds"] - 1) for each in of)
            gain = [each["plain_seconds"] / each["seconds"] for each in of]
            about = f"{value} nodes" if name == "nodes" else f"{value}"
            rows.append(
                [
                    f"codecs of a {about.upper()}" if name == "codecs" else about,
                    len(of),
                    f"{statistics.median(over):.1f}%",
                    f"{over[math.ceil(0.95 * len(over)) - 1]:.1f}%",
                    f"{over[-1]:.1f}%",
                    sum(each <= 5 for each in over),
                    f"{statistics.median(gain):.2f}",
                    f"{min(gain):.2f}",
                ]
            )
    heads = [
        "",
        "setups",
        "slower than the best: median",
        "95th percentile",
        "most",
        "within 5%",
        "times as fast as DDP's own: median",
        "least",
    ]
    record.table(heads, rows, f"{len(found)} simulated setups")
