"""Synchronization of vgg19's gradients by every topology on a slow network, and Gloo's all-reduce.

4 nodes in network namespaces whose links carry 1 Gbit/s (needs root); the gradients of vgg19, 575
MB, scaled down ten times. Two parts:

- **limits**: time of a step against the larger of two bounds that are computed from the task
  graphs (`bounds.py`): *wire*, the bytes that the busiest link carries, at the rate measured on
  it; and *codec*, what encodes, merges and decodes of all nodes cost, by their speed on these
  cores, measured before and after every round. A step is one of `--in-a-row` without a barrier
  between them, as in training; *alone*, it begins at a barrier, which the workers leave at
  different times when they share processors.
- **overlap**: a training step is played, backward and forward pass of a GPU by sleeping. *Exposed*
  is what the step takes beyond them: with everything on (overlap with backward, partitions in a
  pipeline, first layers first), and with these switched off.

Gloo's all-reduce runs in the same rounds.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Only, Priority, Quick, Rate, Rounds
from benchmarks.common.results import Record, console, verdict
from benchmarks.graphs.bounds import Speeds, bounds
from harness import netns
from hipress.topology import TOPOLOGIES

NODES = 4
CONVOLUTIONS = [1728, 36864, 73728, 147456, 294912, *[589824] * 3, 1179648, *[2359296] * 7]
CHANNELS = [64] * 2 + [128] * 2 + [256] * 4 + [512] * 8
DENSE = [(102760448, 4096), (16777216, 4096), (4096000, 1000)]
WITHIN = 1.3  # of the larger bound


def vgg19(scale: int) -> tuple[list[int], list[float]]:
    """Return the elements of each gradient in layer order, and each one's share of computation.

    Large gradients are divided by `scale`. Convolutions take nearly all the time, equally, and
    dense layers 1% each.
    """
    sizes, shares = [], []
    layers = [(*layer, 1.0) for layer in zip(CONVOLUTIONS, CHANNELS, strict=True)]
    layers += [(*layer, 0.16) for layer in DENSE]
    for weight, bias, share in layers:
        sizes += [max(1, weight // scale), bias]
        shares += [share, 0.0]
    return sizes, shares


@dataclass
class Variant(jobs.Variant):
    """Row of a table."""

    topology: str = ""
    compression: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the process."""
    alone: list[float] = field(default_factory=list)
    cpu: float = 0.0

    def run(self, args: SimpleNamespace, sizes: list[int], network: netns.ShapedNetwork) -> None:
        """Run one repetition."""
        played = "compute" in self.options  # a forward and backward pass lies between the steps
        options = {
            "warmup": 2,
            "iterations": args.iterations,
            "in_a_row": args.in_a_row,
            "blocks": 0 if played else args.blocks,
            **self.options,
        }
        if not self.topology:
            command = jobs.node("allreduce.node", elements=sum(sizes), **options)
            results = jobs.torch_job(command, NODES, network, priority=args.priority)
            found = jobs.reports(results)
        else:
            command = jobs.node("graphs.node", sizes=sizes, compression=self.compression, **options)
            servers = NODES if TOPOLOGIES[self.topology].needs_servers else 0
            env = {"HIPRESS_TLS": "off", "HIPRESS_TOPOLOGY": self.topology, **self.env}
            found = jobs.kvstore_job(command, NODES, servers, network, env, priority=args.priority)
            self.cpu = sum(worker["cpu"] for worker in found)
        alone = jobs.slowest(found, network=network)
        self.alone += alone
        self.seconds += alone if played else jobs.slowest(found, "in_a_row", network)


def limits() -> list[Variant]:
    """Return the rows of the first part."""
    tbq, onebit = {"type": "tbq", "threshold": 0.5}, {"type": "onebit"}
    rows = [
        Variant(f"{t} {name}", topology=t, compression=codec)
        for t in ("ps", "ring", "colocated")
        for name, codec in (("none", {}), ("tbq", tbq), ("onebit", onebit))
    ]
    rows += [
        Variant(f"{t} tbq", topology=t, compression=tbq) for t in ("tree", "butterfly", "star")
    ]
    rows += [
        Variant(f"{t} bf16", topology=t, compression={"type": "bf16"})
        for t in ("ps", "ring", "colocated")
    ]
    rows += [Variant("ring tbq, TLS", topology="ring", compression=tbq, env={"HIPRESS_TLS": "on"})]
    if importlib.util.find_spec("torch") is None:
        console.print("[yellow]no Gloo: torch is not installed[/]")
        return rows
    return rows + [Variant(f"Gloo {d}", options={"dtype": d}) for d in ("float32", "bfloat16")]


def overlap(args: SimpleNamespace, shares: list[float]) -> list[Variant]:
    """Return the rows of the second part."""
    tbq = {"type": "tbq", "threshold": 0.5}
    played = {
        "compute": shares,
        "backward": args.backward * args.dilation,
        "forward": args.forward * args.dilation,
    }
    names = ("HIPRESS_PARTITION_ELEMENTS", "MXNET_KVSTORE_BIGARRAY_BOUND")
    whole = dict.fromkeys(names, "1000000000")
    unhurried = {**played, "priority": False}
    after = {**unhurried, "after_backward": True}
    kinds: list[tuple[str, dict, dict]] = [
        ("all on", {}, played),
        ("no priority", {}, unhurried),
        ("not overlapped", {}, after),
        ("all off", whole, after),
    ]
    return [
        Variant(
            f"{topology} {name}: {kind}",
            topology=topology,
            compression=codec,
            env=env,
            options=options,
        )
        for topology in ("ring", "ps", "colocated")
        for name, codec in (("tbq", tbq), ("none", {}))
        for kind, env, options in kinds
    ]


def show_limits(
    record: Record,
    rows: Sequence[Variant],
    sizes: list[int],
    network: netns.ShapedNetwork,
    speeds: Speeds,
) -> None:
    """Print the first part."""
    rows = [row for row in rows if row.seconds]
    gloo = {row.name: row.median for row in rows if not row.topology}
    bits = network.measured_bits_per_second or netns.bits_per_second(network.rate)
    cells = []
    for row in rows:
        wire = codec = float("nan")
        if row.topology:
            wire, codec = bounds(row.topology, row.compression, sizes, NODES, speeds, bits)
            codec = network.seconds(codec)
        ratio = row.median / max(wire, codec)
        alone = statistics.median(row.alone or [float("nan")])
        values = [1e3 * s for s in (row.median, min(row.seconds), alone, wire, codec)]
        ratios = [ratio, *(peer / row.median for peer in gloo.values())]
        cells.append(
            [
                row.name,
                *(f"{v:.1f}" if v == v else "" for v in values),
                *(f"{v:.2f}" if v == v else "" for v in ratios),
            ]
        )
        if row.name in ("ring tbq", "ps tbq"):
            text = f"{row.name} takes {ratio:.2f}x the larger bound (goal {WITHIN})"
            verdict(ratio <= WITHIN, text)
    heads = ["", "median ms", "min ms", "alone ms", "wire ms", "codec ms", "x the larger"]
    title = (
        f"{sum(sizes) * 4 / 1e6:.1f} MB of gradients in {len(sizes)} keys, {NODES} nodes at "
        f"{bits / 1e6:.0f} Mbit/s, dilation {network.dilation:g}"
    )
    record.table([*heads, *(f"against {name}" for name in gloo)], cells, title, "limits")


def show_overlap(record: Record, rows: Sequence[Variant], args: SimpleNamespace) -> None:
    """Print the second part."""
    exposed = {r.name: r.median - args.backward - args.forward for r in rows if r.seconds}
    cells = [
        [row.name, f"{row.median * 1e3:.1f}", f"{exposed[row.name] * 1e3:.1f}"]
        for row in rows
        if row.seconds
    ]
    title = (
        f"exposed communication, ms, beside {args.backward * 1e3:.0f} ms of backward and "
        f"{args.forward * 1e3:.0f} ms of forward pass"
    )
    record.table(["", "median step", "exposed"], cells, title, "overlap")
    for name, value in exposed.items():
        title, _, kind = name.partition(": ")
        off = exposed.get(f"{title}: all off", float("nan"))
        if kind == "all on" and off == off:
            text = f"{title}: {value * 1e3:.1f} ms exposed, {off * 1e3:.1f} ms with all off: "
            verdict(value <= off / 2, f"{text}{off / value:.1f}x less (goal 2)")


def main(
    part: Annotated[str, typer.Option(help="limits, overlap or both.")] = "both",
    rounds: Rounds = 3,
    iterations: Annotated[int, typer.Option(help="Steps alone, a round.")] = 5,
    blocks: Annotated[int, typer.Option(help="Of steps in a row, a round.")] = 2,
    in_a_row: Annotated[int, typer.Option(help="Steps of a block.")] = 10,
    scale: Annotated[int, typer.Option(help="Gradients are divided by this.")] = 10,
    backward: Annotated[float, typer.Option(help="Seconds.")] = 0.2,
    forward: Annotated[float, typer.Option(help="Seconds.")] = 0.1,
    rate: Rate = "1gbit",
    dilation: Dilation = 1.0,
    priority: Priority = False,
    only: Only = "",
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        rounds, iterations, blocks, in_a_row, scale = 1, 2, 1, 2, 1000
        only = only or "^(ring|colocated) tbq(: all (on|off))?$|Gloo"
    args = SimpleNamespace(**locals())
    record = Record("topologies", vars(args))
    sizes, shares = vgg19(scale)
    rows: list[Variant] = []
    well = True
    with netns.ShapedNetwork(NODES, rate, dilation=dilation, verify=not quick) as network:

        def run(row: Variant) -> None:
            row.run(args, sizes, network)

        if part != "overlap":
            first = [row for row in limits() if jobs.matches(only, row)]
            speeds = Speeds([row.compression for row in first if row.topology])
            for _ in range(rounds):
                speeds.measure()
                well &= jobs.take_turns(1, first, run)
            speeds.measure()
            show_limits(record, first, sizes, network, speeds)
            rows += first
        if part != "limits":
            second = [row for row in overlap(args, shares) if jobs.matches(only, row)]
            well &= jobs.take_turns(rounds, second, run)
            show_overlap(record, second, args)
            rows += second
    record["rows"] = [vars(row) for row in rows]
    record.save()
    raise typer.Exit(not well)
