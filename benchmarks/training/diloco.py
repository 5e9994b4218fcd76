"""Share of computing time over a slow link: DiLoCo, torchft's DiLoCo, and codecs in each step.

A GPT on several nodes of a wide-area network (`--wan`, harness/wan.py; needs root). Computation is
simulated by sleeping, `--compute` seconds per step, as on a GPU. *Computing* is the share of a step
that "alone", which sends nothing, takes. *Simulated* is the prediction of `hipress simulate` with
`--sync-every`, `--fragments` and `--sync-delay`, from the link's rate and delay alone, without the
codecs' time.

With `--ranks-per-site` each node of the network is a site of several ranks with a fast network
among them. They average gradients by DistributedDataParallel, or, in methods that begin with
"fsdp ", FSDP2 shards the model over them. The loss is DiLoCo's mean over the ranks and the last H
steps. All methods have the same batches.
"""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Dilation, Nodes, Output, Priority, Quick, Wan
from benchmarks.common.results import Record
from benchmarks.training import torchft_peer
from harness import netns
from harness.wan import WideAreaNetwork
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.plan import Decision
from hipress.simulator.models import Layer, Model
from hipress.simulator.rounds import Rounds, mean_step
from hipress.simulator.step import Options

ALONE, DILOCO, TORCHFT, FSDP = "alone", "diloco ", "torchft ", "fsdp "
METHODS = (
    "alone; fp16; powersgd:1; hipress.powersgd:rank=1; onebit; torchft fragments=1; "
    "torchft fragments=3,delay=5; diloco none; diloco maxmin:bits=4; "
    "diloco maxmin:bits=4,fragments=4; diloco maxmin:bits=4,fragments=4,delay=5"
)
BYTES = {"none": 4.0, "maxmin": 0.5 + 8 / 1024}
"""Bytes per element of types whose synchronization is simulated; `maxmin` with 4 bits."""
MIN_SIZE = 16 * 1024
SITES = (
    "alone; fsdp alone; diloco maxmin:bits=4,fragments=4,delay=5; "
    "fsdp diloco maxmin:bits=4,fragments=4,delay=5"
)
"""Default methods with several ranks per site."""


def main(
    wan: Wan = "rate=100mbit,delay=20ms",
    nodes: Nodes = 4,
    methods: Annotated[str, typer.Option(help="Separated by semicolons.")] = "",
    sync_every: int = 30,
    compute: Annotated[float, typer.Option(help="Seconds of forward and backward pass.")] = 0.1,
    width: int = 512,
    steps: Annotated[int, typer.Option(help="Of a block of methods that send in each.")] = 8,
    blocks: int = 2,
    ranks_per_site: Annotated[int, typer.Option(min=1, help="Ranks of each node.")] = 1,
    dilation: Dilation = 1.0,
    priority: Priority = False,
    output: Output = "diloco-wan",
    quick: Quick = False,
) -> None:
    netns.require()
    methods = methods or (METHODS if ranks_per_site == 1 else SITES)
    if quick:
        nodes, width, steps, blocks, sync_every = 2, 64, 2, 1, 4
        methods = "alone; onebit; diloco maxmin:bits=4,fragments=2,delay=1"
        if ranks_per_site > 1:
            methods = "alone; fsdp alone; fsdp diloco maxmin:bits=4,fragments=2,delay=1"
    args = SimpleNamespace(**locals())
    record = Record(output, vars(args))
    names = [name.strip() for name in methods.split(";")]
    if any(name.startswith(TORCHFT) for name in names):
        torchft_peer.install()
    found: dict[str, jobs.Reports] = {}
    with WideAreaNetwork(nodes, wan, dilation) as network:
        link = network.link(0)
        for name in names:
            command = jobs.node(
                "training.diloco_node",
                methods=[name],
                sync_every=sync_every,
                width=width,
                compute=compute * dilation,
                steps=steps,
                blocks=blocks,
                ranks_per_site=ranks_per_site,
            )
            ranks = nodes * ranks_per_site
            results = jobs.torch_job(command, ranks, network, 500, priority)
            found[name] = jobs.reports(results)
            print(name, jobs.slowest(found[name], network=network), flush=True)
            print(found[name][0]["said"], flush=True)
        seconds = {
            name: statistics.fmean(jobs.slowest(of, network=network)) for name, of in found.items()
        }
    losses = {
        name: statistics.fmean(loss for report in of for loss in report["losses"][-sync_every:])
        for name, of in found.items()
        if DILOCO in name
    }
    sizes = found[ALONE][0]["sizes"]
    cells = []
    for name, each in seconds.items():
        alone = seconds[FSDP * name.startswith(FSDP) + ALONE]
        expected = simulated(args, name, sizes, alone, link.up, link.delay)
        share = f"{expected.computing:.0%}" if expected else ""
        loss = [f"{losses[name]:.4f}" if name in losses else ""] if ranks_per_site > 1 else []
        cells.append([name, f"{1e3 * each:.0f}", f"{min(1.0, alone / each):.0%}", share, *loss])
    title = (
        f"{sum(sizes) / 1e6:.1f} million weights, {nodes} nodes, {wan}, H = {sync_every}, "
        f"dilation {dilation:g}"
    )
    heads = ["method", "ms a step in the mean", "computing", "simulated"]
    if ranks_per_site > 1:
        heads.append("loss")
        title += f", {ranks_per_site} ranks per site"
    record.table(heads, cells, title)
    record["seconds"], record["losses"] = seconds, losses
    record.save()


def simulated(
    args: SimpleNamespace, name: str, sizes: list[int], compute: float, rate: float, delay: float
):
    """Return the simulator's mean step of a DiLoCo method, or None for other methods.

    Sites whose ranks hold the whole model send it several times, which is not simulated.
    """
    sharded, name = name.startswith(FSDP), name.removeprefix(FSDP)
    if not name.startswith(DILOCO) or (args.ranks_per_site > 1 and not sharded):
        return None
    kind, _, rest = name.removeprefix(DILOCO).partition(":")
    if kind not in BYTES:
        return None
    values = dict(item.split("=") for item in filter(None, rest.split(",")))
    layers = tuple(Layer(str(i), size) for i, size in enumerate(sizes))
    zero = (0.0,) * len(layers)
    model = Model(name, "", 1, layers, zero, (compute, *zero[1:]))
    plan = {layer.name: Decision(False, 1) for layer in layers if layer.size < MIN_SIZE}
    costs = Costs(Codec("none", 4.0), Codec(kind, BYTES[kind]))
    cluster = Cluster(bandwidth=rate, latency=delay)
    rounds = Rounds(args.sync_every, int(values.get("fragments", 1)), int(values.get("delay", 0)))
    return mean_step(model, costs, cluster, Options("colocated", args.nodes), rounds, plan)
