"""Cost of many-to-one collisions at co-located servers, and the gain of avoiding them.

If all workers send to the same owner first, its link is the bottleneck while other links are idle.
Graphs avoid that by order alone: each worker begins with the owner to its right. The benchmark
simulates steps with that order (*spread*) and without it (*same*). The *bound* is the best that any
coordinator of sends could reach: the bytes of one node over the rate of its link, or, if that is
more, the work of its codec threads.
"""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from benchmarks.common.options import Models, Quick, Rate
from benchmarks.common.results import Record
from hipress.base import units
from hipress.simulator import models, setting
from hipress.simulator.step import Options, SimulatedStep, simulate
from hipress.topology import colocated


def same_order(graph, num_workers, owners):
    spread_order(graph, num_workers, owners, spread=False)


spread_order = colocated.exchange


def main(
    networks: Models = "vgg19 resnet50 bert-base",
    nodes: str = "4 8 16",
    rate: Rate = "1gbit",
    profile: str = "sosp21",
    quick: Quick = False,
) -> None:
    if quick:
        networks, nodes = "resnet50", "4"
    record = Record("collisions", locals())
    cells = []
    for name in networks.split():
        net = models.load(name)
        for count in map(int, nodes.split()):
            scene = setting.read(profile, "", "", net, "colocated", count)
            cluster = replace(scene.cluster, bandwidth=units.rate(rate))
            for compressed in (False, True):
                costs = scene.costs
                if not compressed:
                    costs = replace(costs, compressed=costs.plain)

                def run(nodes=count, net=net, costs=costs, cluster=cluster) -> SimulatedStep:
                    options = Options("colocated", nodes, overlap=False, symmetric=False)
                    return simulate(net, costs, cluster, options)

                spread = run()
                with mock.patch.object(colocated, "exchange", same_order):
                    same = run()
                wire = spread.bytes_per_host / cluster.bandwidth
                bound = max(wire, spread.compute_use * spread.seconds)
                cells.append(
                    [
                        name,
                        str(count),
                        "yes" if compressed else "no",
                        f"{1e3 * same.exposed:.1f}",
                        f"{1e3 * spread.exposed:.1f}",
                        f"{1 - spread.exposed / same.exposed:.1%}",
                        f"{1e3 * bound:.1f}",
                        f"{spread.exposed / bound - 1:.1%}",
                    ]
                )
    heads = ["model", "nodes", "compressed", "same", "spread", "saved", "bound", "above bound"]
    record.table(heads, cells, f"Synchronization after the backward pass, ms, links of {rate}")
    record.save()
