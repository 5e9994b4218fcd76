"""Planner: per gradient, whether to compress it, and its number of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hipress.planning.model import MeasuredModel
from hipress.planning.plan import Decision, GradientSize
from hipress.planning.profiles import MeasuredProfile
from hipress.planning.sosp21 import PublishedModel, PublishedProfile
from hipress.topology import topologies
from hipress.topology.topology import Topology


@dataclass(frozen=True)
class Choice:
    """Gradient, its decision, and the predicted seconds for it alone."""

    gradient: GradientSize
    decision: Decision
    raw: float
    compressed: float


@dataclass(frozen=True)
class Plan:
    """Choices in the order of the gradients, and their total."""

    choices: list[Choice]
    raw_seconds: float
    """Predicted seconds for all gradients uncompressed."""
    planned_seconds: float
    """Predicted seconds for the plan."""
    summed: bool
    """Whether seconds are sums over gradients (the published model). Otherwise they are the time of
    the busiest resource, which all gradients share."""

    @property
    def compressed(self) -> int:
        """Number of gradients that the plan compresses."""
        return sum(choice.decision.compress for choice in self.choices)


def plannable(published: bool = False) -> list[Topology]:
    """Return the topologies for which measured profiles, or the published one, can make a plan."""
    found = topologies.TOPOLOGIES.values()
    return [t for t in found if (t.published if published else t.cost) is not None]


def topology_named(name: str, published: bool = False) -> Topology:
    """Return the topology ``name``, in any capitalization."""
    known = {topology.name: topology for topology in plannable(published)}
    if name.lower() not in known:
        allowed = topologies.either(map(str.upper, known))
        raise ValueError(f"the topology must be {allowed}, not {name!r}")
    return known[name.lower()]


def make(
    gradients: Sequence[GradientSize],
    topology: str,
    nodes: int,
    profile: PublishedProfile | MeasuredProfile,
    codec: str | None = None,
    ratio: float | None = None,
    changes: Mapping[str, object] | None = None,
) -> Plan:
    """Make a plan for ``nodes`` nodes with ``topology``.

    ``ratio`` is the compressed over the raw size, instead of the profile's. ``changes`` are fields
    of a measured profile's cluster.
    """
    chosen = topology_named(topology, isinstance(profile, PublishedProfile))
    if nodes < 1:
        raise ValueError(f"a plan needs at least one node, got {nodes}")
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(f"the compression ratio must be above 0 and at most 1, got {ratio}")
    changes, codec = dict(changes or {}), profile.type_named(codec)
    if isinstance(profile, PublishedProfile):
        if changes.keys() - {"devices"}:
            raise ValueError(f"profile {profile.name} plans for its own links and hosts only")
        cost = PublishedModel(profile, chosen, nodes, ratio or profile.ratio)
    else:
        costs, cluster = profile.costs(codec), replace(profile.cluster(), **changes)
        if ratio is not None:
            small = replace(costs.compressed, bytes_per_element=4 * ratio, fixed_bytes=0.0)
            costs = replace(costs, compressed=small)
        cluster = replace(cluster, threads=cluster.share(nodes))
        cost = MeasuredModel(chosen, nodes, costs, cluster)
    best = {size: cost.best(size) for size in {gradient.size for gradient in gradients}}
    rows = [best[gradient.size] for gradient in gradients]
    compressed = cost.choose(rows)
    choices = []
    for gradient, row, compress in zip(gradients, rows, compressed):
        (raw_partitions, raw), (partitions, packed) = row
        decision = Decision(compress, partitions if compress else raw_partitions)
        choices.append(Choice(gradient, decision, raw.seconds, packed.seconds))
    nothing = cost.total([raw for (_, raw), _ in rows])
    planned = cost.total([row[compress][1] for row, compress in zip(rows, compressed)])
    return Plan(choices, nothing, planned, cost.summed)
