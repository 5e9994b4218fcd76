"""Makes a plan: per gradient, compress or not, and into how many partitions to cut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from hipress.casync import topologies
from hipress.casync.topology import Topology
from hipress.secopa import model, sosp21
from hipress.secopa.plan import Decision, Gradient
from hipress.secopa.profiles import MeasuredProfile, ProfileError
from hipress.secopa.sosp21 import PublishedProfile


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
    """The topology ``name``, in any capitals.

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
    published = isinstance(profile, PublishedProfile)
    chosen = topology_named(topology, published)
    if nodes < 1:
        raise ValueError(f"a plan needs at least one node, got {nodes}")
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(f"the compression ratio must be above 0 and at most 1, got {ratio}")
    changes = dict(changes or {})
    if published:
        if changes.keys() - {"devices"}:
            raise ValueError(f"profile {profile.name} plans for its own links and hosts only")
        if codec is not None:
            raise ValueError(
                f"profile {profile.name} knows one codec by its ratio; give a ratio, not {codec!r}"
            )
        return _published(gradients, chosen, nodes, profile, ratio or profile.ratio)
    return _measured(gradients, chosen, nodes, profile, codec, ratio, changes)


def _published(
    gradients: Sequence[Gradient],
    topology: Topology,
    nodes: int,
    profile: PublishedProfile,
    ratio: float,
) -> Plan:
    counts = _partition_counts(nodes)

    @cache
    def best(size: int) -> tuple[int, int, float, float]:
        costs = sosp21.costs(profile, topology, nodes, size, ratio)
        raw = min(counts, key=costs.raw)  # the first of equal ones
        small = min(counts, key=costs.compressed)
        return raw, small, costs.raw(raw), costs.compressed(small)

    choices = []
    for gradient in gradients:
        raw, small, raw_ms, small_ms = best(gradient.size)
        compress = raw_ms > small_ms
        decision = Decision(compress, small if compress else raw)
        choices.append(Choice(gradient, decision, raw_ms / 1e3, small_ms / 1e3))
    raw_total = sum(choice.raw for choice in choices)
    planned = sum(min(choice.raw, choice.compressed) for choice in choices)
    return Plan(choices, raw_total, planned, summed=True)


def _partition_counts(nodes: int) -> list[int]:
    """All that the published model allows, 1 to ``nodes``; beyond 1000, in steps of 1%."""
    counts = list(range(1, min(nodes, 1000) + 1))
    while counts[-1] < nodes:
        counts.append(min(nodes, counts[-1] + counts[-1] // 100))
    return counts


def _measured(
    gradients: Sequence[Gradient],
    topology: Topology,
    nodes: int,
    profile: MeasuredProfile,
    codec: str | None,
    ratio: float | None,
    changes: Mapping[str, object],
) -> Plan:
    types = profile.compressed_types()
    if codec is None:
        if len(types) != 1:
            raise ProfileError(
                f"profile {profile.name} holds {', '.join(types) or 'no compression type'}; "
                "say which one the plan is for"
            )
        codec = types[0]
    costs, cluster = profile.costs(codec), replace(profile.cluster(), **changes)
    cluster = replace(cluster, threads=cluster.share(nodes))
    small = costs.compressed
    if ratio is not None:
        small = replace(small, bytes_per_element=4 * ratio, fixed_bytes=0.0)
    best: dict[int, tuple] = {}
    for size in {gradient.size for gradient in gradients}:
        best[size] = (
            model.best(topology, nodes, size, costs.plain, cluster),
            model.best(topology, nodes, size, small, cluster),
        )
    chosen = _balance([best[gradient.size] for gradient in gradients])
    choices = []
    for gradient, compress in zip(gradients, chosen):
        (raw_k, raw), (small_k, packed) = best[gradient.size]
        decision = Decision(compress, small_k if compress else raw_k)
        choices.append(Choice(gradient, decision, raw.seconds, packed.seconds))
    rows = [best[gradient.size] for gradient in gradients]
    nothing = _bottleneck([raw for (_, raw), _ in rows])
    planned = _bottleneck([pair[compress][1] for pair, compress in zip(rows, chosen)])
    return Plan(choices, nothing, planned, summed=False)


def _bottleneck(needs: Sequence[model.Needs]) -> float:
    """Seconds of gradients that are synchronised together: the busiest resource and, before it is
    busy, the shortest way."""
    threads, link = sum(n.threads for n in needs), sum(n.link for n in needs)
    return max(threads, link) + min(n.path for n in needs)


def _balance(rows: Sequence[tuple]) -> list[bool]:
    """Chooses gradients to compress, so that neither links nor threads take longer than they must.

    Gradients that alone would be slower compressed stay as they are. The others follow in the order
    of link time saved per thread time spent, as long as the busier of the two gets less busy.
    """
    chosen = [False] * len(rows)
    threads = sum(raw.threads for (_, raw), _ in rows)
    link = sum(raw.link for (_, raw), _ in rows)

    def worth(i: int) -> float:
        (_, raw), (_, packed) = rows[i]
        spent = packed.threads - raw.threads
        saved = raw.link - packed.link
        return saved / spent if spent > 0 else float("inf")

    for i in sorted(range(len(rows)), key=worth, reverse=True):
        (_, raw), (_, packed) = rows[i]
        if packed.seconds >= raw.seconds:
            continue
        next_threads = threads + packed.threads - raw.threads
        next_link = link + packed.link - raw.link
        if max(next_threads, next_link) < max(threads, link):
            chosen[i], threads, link = True, next_threads, next_link
    return chosen
