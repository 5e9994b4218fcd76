"""What many-to-one collisions cost co-located servers, and what avoiding them buys.

If all workers send to the same owner first, its link is the bottleneck while others idle. Graphs
avoid that by order alone: each worker begins with the owner to its right. This simulates steps with
that order (*spread*) and without it (*same*), and beside them the *bound*, which is all that any
coordinator of sends could reach: the bytes of one node over the rate of its link, or, where that
is more, the work of its codec threads.

    python benchmarks/collisions.py --rate 1gbit
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from hipress import units  # noqa: E402
from hipress.casync import colocated  # noqa: E402
from hipress.simulator import models, setting  # noqa: E402
from hipress.simulator.step import Options, Step, simulate  # noqa: E402


def same_order(graph, num_workers, owners):
    spread_order(graph, num_workers, owners, spread=False)


spread_order = colocated.exchange


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["vgg19", "resnet50", "bert-base"])
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--rate", default="1gbit", help="of a link")
    parser.add_argument("--profile", default="sosp21")
    args = parser.parse_args()
    table = Table(title=f"Synchronisation after the backward pass, ms, links of {args.rate}")
    for head in ("model", "nodes", "compressed", "same", "spread", "saved", "bound", "above bound"):
        table.add_column(head, justify="left" if head == "model" else "right")
    for name in args.models:
        net = models.load(name)
        for nodes in args.nodes:
            scene = setting.read(args.profile, "", "", net, "colocated", nodes)
            cluster = replace(scene.cluster, bandwidth=units.rate(args.rate))
            for compressed in (False, True):
                costs = scene.costs
                if not compressed:
                    costs = replace(costs, compressed=costs.plain)

                def run(nodes=nodes, net=net, costs=costs, cluster=cluster) -> Step:
                    options = Options("colocated", nodes, overlap=False, symmetric=False)
                    return simulate(net, costs, cluster, options)

                spread = run()
                with mock.patch.object(colocated, "exchange", same_order):
                    same = run()
                wire = spread.bytes_per_host / cluster.bandwidth
                bound = max(wire, spread.compute_use * spread.seconds)
                table.add_row(
                    name, str(nodes), "yes" if compressed else "no", f"{1e3 * same.exposed:.1f}",
                    f"{1e3 * spread.exposed:.1f}", f"{1 - spread.exposed / same.exposed:.1%}",
                    f"{1e3 * bound:.1f}", f"{spread.exposed / bound - 1:.1%}",
                )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
