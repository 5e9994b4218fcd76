"""Synchronising vgg19's gradients over every topology on a slow network, beside Gloo's all-reduce.

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

Variants take turns, `--rounds` times. Gloo's all-reduce runs in the same rounds.

    python benchmarks/topologies.py --part limits --only "^(ring|ps) "
    python benchmarks/topologies.py --part limits --dilation 4      # nodes with cores of their own
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import jobs
from bounds import Speeds, bounds
from jobs import netns

sys.path.insert(0, str(jobs.ROOT / "python"))

from hipress.casync import TOPOLOGIES  # noqa: E402

HERE = Path(__file__).resolve().parent
NODES = 4
CONVOLUTIONS = [1728, 36864, 73728, 147456, 294912, *[589824] * 3, 1179648, *[2359296] * 7]
CHANNELS = [64] * 2 + [128] * 2 + [256] * 4 + [512] * 8
DENSE = [(102760448, 4096), (16777216, 4096), (4096000, 1000)]
WITHIN = 1.3  # of the larger bound


def vgg19(scale: int) -> tuple[list[int], list[float]]:
    """Elements of each gradient in layer order, large ones divided by `scale`; and each one's share
    of the time to compute it: convolutions take nearly all, equally, dense layers 1% each."""
    sizes, shares = [], []
    layers = [(*layer, 1.0) for layer in zip(CONVOLUTIONS, CHANNELS, strict=True)]
    layers += [(*layer, 0.16) for layer in DENSE]
    for weight, bias, share in layers:
        sizes += [max(1, weight // scale), bias]
        shares += [share, 0.0]
    return sizes, shares


@dataclass
class Variant:
    """One row."""

    name: str
    topology: str = ""
    compression: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    in_a_row: list[float] = field(default_factory=list)
    cpu: float = 0.0
    error: str = ""

    @property
    def median(self) -> float:
        """Seconds; NaN if nothing was measured."""
        return statistics.median(self.in_a_row or self.seconds or [float("nan")])

    @property
    def played(self) -> bool:
        """Whether a forward and backward pass lies between the steps, too."""
        return "--compute" in self.flags

    def run(self, args: argparse.Namespace, sizes: list[int], network) -> None:
        """One round."""
        count = ["--warmup", "2", "--iterations", str(args.iterations)]
        count += ["--blocks", str(0 if self.played else args.blocks)]
        count += ["--in-a-row", str(args.in_a_row)]
        try:
            if not self.topology:
                command = [sys.executable, str(HERE / "gloonode.py"), *count]
                command += ["--elements", str(sum(sizes)), *self.flags]
                found = jobs.reports(
                    jobs.run_torch_job(command, NODES, network, priority=args.priority)
                )
            else:
                command = [sys.executable, str(HERE / "graphnode.py"), *count]
                command += ["--sizes", json.dumps(sizes), *self.flags]
                command += ["--compression", json.dumps(self.compression)]
                servers = NODES if TOPOLOGIES[self.topology].needs_servers else 0
                env = {"HIPRESS_TLS": "off", "HIPRESS_TOPOLOGY": self.topology, **self.env}
                found = jobs.run_kvstore_job(
                    command, NODES, servers, True, network, env, priority=args.priority
                )
                self.cpu = sum(worker["cpu"] for worker in found)
        except jobs.JobError as error:
            self.error = str(error)
            return
        self.seconds += jobs.iteration_seconds(found, network=network)
        self.in_a_row += jobs.iteration_seconds(found, "in_a_row", network)


def limits(args: argparse.Namespace) -> list[Variant]:
    """Rows of the first part."""
    tbq, onebit = {"type": "tbq", "threshold": 0.5}, {"type": "onebit"}
    rows = [Variant(f"{t} {name}", t, codec)
            for t in ("ps", "ring", "colocated")
            for name, codec in (("none", {}), ("tbq", tbq), ("onebit", onebit))]
    rows += [Variant(f"{t} tbq", t, tbq) for t in ("tree", "butterfly", "star")]
    rows += [Variant(f"{t} bf16", t, {"type": "bf16"}) for t in ("ps", "ring", "colocated")]
    rows += [Variant("ring tbq, TLS", "ring", tbq, {"HIPRESS_TLS": "on"})]
    rows += [Variant("Gloo float32", flags=["--dtype", "float32"]),
             Variant("Gloo bfloat16", flags=["--dtype", "bfloat16"])]
    return [row for row in rows if re.search(args.only, row.name)]


def overlap(args: argparse.Namespace, shares: list[float]) -> list[Variant]:
    """Rows of the second part."""
    tbq = {"type": "tbq", "threshold": 0.5}
    played = ["--compute", json.dumps(shares), "--backward", str(args.backward * args.dilation),
              "--forward", str(args.forward * args.dilation)]
    names = ("HIPRESS_PARTITION_ELEMENTS", "MXNET_KVSTORE_BIGARRAY_BOUND")
    whole = dict.fromkeys(names, "1000000000")
    off = ["--no-priority", "--after-backward"]
    rows = []
    for topology in ("ring", "ps", "colocated"):
        for name, codec in (("tbq", tbq), ("none", {})):
            title = f"{topology} {name}"
            rows += [
                Variant(f"{title}: all on", topology, codec, flags=played),
                Variant(f"{title}: no priority", topology, codec, flags=[*played, "--no-priority"]),
                Variant(f"{title}: not overlapped", topology, codec, flags=[*played, *off]),
                Variant(f"{title}: all off", topology, codec, whole, [*played, *off]),
            ]
    return [row for row in rows if re.search(args.only, row.name)]


def turns(
    rows: list[Variant], args, sizes, network, console: Console, speeds: Speeds | None = None
) -> None:
    """Runs all rows in turns, and measures the codecs' speeds before and after each."""
    for round_ in range(args.rounds):
        if speeds:
            speeds.measure()
        for row in rows:
            if not row.error:
                console.print(f"[dim]round {round_ + 1}/{args.rounds}: {row.name}[/]")
                row.run(args, sizes, network)
            if row.error:
                console.print(f"[red]{row.name}:[/] {row.error}", markup=True, highlight=False)
    if speeds:
        speeds.measure()


def show_limits(
    rows: list[Variant], sizes, network: netns.ShapedNetwork, speeds: Speeds, console: Console
) -> list[dict[str, Any]]:
    """Prints the first part; returns it for the record."""
    gloo = {row.name: row.median for row in rows if not row.topology}
    bits = network.measured_bits_per_second
    title = (f"{sum(sizes) * 4 / 1e6:.1f} MB of gradients in {len(sizes)} keys, {NODES} nodes at "
             f"{bits / 1e6:.0f} Mbit/s, dilation {network.dilation:g}")  # fmt: skip
    out = Table(title=title, title_justify="left")
    out.add_column("")
    for head in ("median ms", "min ms", "alone ms", "wire ms", "codec ms", "x the larger", *(
            f"x faster than {name}" for name in gloo)):
        out.add_column(head, justify="right")
    found = []
    for row in rows:
        if not row.in_a_row:
            continue
        wire = codec = float("nan")
        if row.topology:
            wire, codec = bounds(row.topology, row.compression, sizes, NODES, speeds, bits)
            codec = network.seconds(codec)
        ratio = row.median / max(wire, codec)
        alone = statistics.median(row.seconds or [float("nan")])
        values = [1e3 * s for s in (row.median, min(row.in_a_row), alone, wire, codec)]
        ratios = [peer / row.median for peer in gloo.values()]
        out.add_row(row.name, *(f"{v:.1f}" if v == v else "" for v in values),
                    *(f"{v:.2f}" if v == v else "" for v in [ratio, *ratios]))
        found.append({"name": row.name, "ms": [round(s * 1e3, 2) for s in row.in_a_row],
                      "alone_ms": [round(s * 1e3, 2) for s in row.seconds],
                      "wire_ms": wire * 1e3, "codec_ms": codec * 1e3, "times_larger_bound": ratio,
                      "cpu_ms": network.seconds(row.cpu) * 1e3})
        if row.name in ("ring tbq", "ps tbq"):
            mark = "[green]holds[/]" if ratio <= WITHIN else "[red]missed[/]"
            console.print(f"{mark}: {row.name} takes {ratio:.2f}x the larger bound (goal {WITHIN})")
    console.print(out)
    return found


def show_overlap(rows: list[Variant], args, console: Console) -> list[dict[str, Any]]:
    """Prints the second part; returns it for the record."""
    compute = args.backward + args.forward
    title = (f"exposed communication, ms, beside {args.backward * 1e3:.0f} ms of backward and "
             f"{args.forward * 1e3:.0f} ms of forward pass")  # fmt: skip
    out = Table(title=title, title_justify="left")
    for head in ("", "median step", "exposed"):
        out.add_column(head, justify="right" if head else "left")
    found = []
    exposed = {row.name: row.median - compute for row in rows}
    for row in rows:
        if row.seconds:
            out.add_row(row.name, f"{row.median * 1e3:.1f}", f"{exposed[row.name] * 1e3:.1f}")
            found.append({"name": row.name, "ms": [round(s * 1e3, 2) for s in row.seconds],
                          "exposed_ms": exposed[row.name] * 1e3})
    console.print(out)
    for name, value in exposed.items():
        title, _, kind = name.partition(": ")
        off = exposed.get(f"{title}: all off", float("nan"))
        if kind == "all on" and off == off:
            mark = "[green]holds[/]" if value <= off / 2 else "[red]missed[/]"
            console.print(f"{mark}: {title}: {value * 1e3:.1f} ms exposed, {off * 1e3:.1f} ms with "
                          f"all off: {off / value:.1f}x less (goal 2)")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["limits", "overlap", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5, help="steps alone, a round")
    parser.add_argument("--blocks", type=int, default=2, help="of steps in a row, a round")
    parser.add_argument("--in-a-row", type=int, default=10, help="steps of a block")
    parser.add_argument("--scale", type=int, default=10, help="gradients are divided by this")
    parser.add_argument("--backward", type=float, default=0.2, help="seconds")
    parser.add_argument("--forward", type=float, default=0.1, help="seconds")
    parser.add_argument("--priority", action="store_true", help="before this machine's other work")
    parser.add_argument("--only", default="", help="regular expression of variants' names")
    netns.add_dilation(parser)
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    console = Console(width=None if sys.stdout.isatty() else 140)
    reason = netns.available()
    if reason:
        console.print(f"[yellow]skipped: {reason}[/]")
        return 0
    sizes, shares = vgg19(args.scale)
    machine = jobs.machine()
    record: dict[str, Any] = {"machine": machine, "sizes": sizes, "dilation": args.dilation}
    rows: list[Variant] = []
    with netns.ShapedNetwork(NODES, dilation=args.dilation) as network:
        if args.part != "overlap":
            first = limits(args)
            if importlib.util.find_spec("torch") is None:
                console.print("[yellow]no Gloo: torch is not installed[/]")
                first = [row for row in first if row.topology]
            speeds = Speeds([row.compression for row in first if row.topology])
            turns(first, args, sizes, network, console, speeds)
            record["limits"] = show_limits(first, sizes, network, speeds, console)
            rows += first
        if args.part != "limits":
            second = overlap(args, shares)
            turns(second, args, sizes, network, console)
            record["overlap"] = show_overlap(second, args, console)
            rows += second
    path = jobs.save("topologies", record)
    console.print(f"saved {path}")
    return 1 if any(row.error for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
