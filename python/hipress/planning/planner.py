"""Makes a plan: per gradient, compress or not, and into how many partitions to cut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hipress.planning.model import MeasuredModel
from hipress.planning.plan import Decision, Gradient
from hipress.planning.profiles import MeasuredProfile
from hipress.planning.sosp21 import PublishedModel, PublishedProfile
from hipress.topology import topologies
from hipress.topology.topology import Topology


@dataclass(frozen=True)
class Choice:
    """A gradient, what to do with it, and what the model predicts for it alone, in seconds."""

    gradient: Gradient
    decision: Decision
    raw: float
    compressed: float


@dataclass(frozen=True)
class Plan:
    """The choices, in the order of the gradients, and what they amount to."""

    choices: list[Choice]
    raw_seconds: float
    """Predicted for all gradients uncompressed."""
    planned_seconds: float
    """Predicted for the plan. Neither is above the other model's all-compressed prediction."""
    summed: bool
    """True if seconds are sums over gradients, one by one (the published model); else the time of
    the busiest resource, which all gradients share."""

    @property
    def compressed(self) -> int:
        """The number of gradients that the plan compresses."""
        return sum(choice.decision.compress for choice in self.choices)


def plannable(published: bool = False) -> list[Topology]:
    """Topologies that a plan can be made for by measured profiles, or by the published one."""
    found = topologies.TOPOLOGIES.values()
    return [t for t in found if (t.published if published else t.cost) is not None]


def topology_named(name: str, published: bool = False) -> Topology:
    """Return the topology ``name``, in any capitals.

    :raises ValueError: if no plan can be made for it
    """
    known = {topology.name: topology for topology in plannable(published)}
    if name.lower() not in known:
        allowed = topologies.either(map(str.upper, known))
        raise ValueError(f"the topology must be {allowed}, not {name!r}")
    return known[name.lower()]


def make(
    gradients: Sequence[Gradient],
    topology: str,
    nodes: int,
    profile: PublishedProfile | MeasuredProfile,
    codec: str | None = None,
    ratio: float | None = None,
    changes: Mapping[str, object] | None = None,
) -> Plan:
    """Plans for ``nodes`` nodes under ``topology``.

    :param codec: of a measured profile; needed if it has several beside "none"
    :param ratio: compressed over raw size, instead of the profile's
    :param changes: of a measured profile's cluster, by field
    :raises ValueError: in one sentence, for arguments that cannot be
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
