"""The published cost model of SeCoPa, formula by formula.

x is a gradient's size in float32 elements, K the number of partitions, N of nodes, r the ratio of
compressed to raw size; E, D, A, S, G, B are the profile's curves (encode, decode, merge, ring step,
gather, broadcast). Results are milliseconds.

    PS raw            G(x/K) + B(x/K) + (N-1) A(x/K)
    PS compressed     G(rx/K) + B(rx/K) + min(K+1, N) E(x/K) + min(N-1+K, 2(N-1)) D(rx/K)
                      + (N-1) A(x/K)
    ring raw          2(N-1) S(x/K) + (N-1) A(x/K)
    ring compressed   2(N-1) S(rx/K) + N E(x/K) + N D(rx/K) + (N-1) A(x/K)

Source: Bai et al., SOSP 2021, section 3.3, with the constants and the term counts of the published
planner. How often each curve counts is said by the topologies themselves
(:class:`hipress.topology.topology.Terms`); the tree's counts are not in the publication.

G and B were measured for 4, 8 and 16 nodes. In between, w, b and o are interpolated linearly in N;
below 4, on the line to 0 at N = 1 (where nothing is sent); above 16, the line through 8 and 16 goes
on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.planning.model import Best, Needs
from hipress.topology.topology import Topology

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class PublishedProfile:
    """Curves of a cluster in the published form: milliseconds by float32 elements."""

    name: str
    source: str
    ratio: float
    encode: Curve
    decode: Curve
    merge: Curve
    ring_step: Curve
    gather: dict[int, Curve]
    broadcast: dict[int, Curve]
    poor = ()
    shared_host = False

    def compressed_types(self) -> list[str]:
        """Return the codecs. The published one has no name."""
        return [""]

    def type_named(self, codec: str | None) -> str:
        """Return the profile's one codec."""
        if codec:
            raise ValueError(f"profile {self.name} has one codec, without a name, not {codec!r}")
        return ""

    def costs(self, codec: str = "") -> Costs:
        """Return the costs of uncompressed and compressed gradients, in seconds by elements."""
        decode = self._seconds(self.decode, self.ratio)
        compressed = Codec(
            "published",
            4 * self.ratio,
            encode=self._seconds(self.encode),
            decode=decode,
            merge=decode,
            merge_separately=True,
        )
        return Costs(Codec("none", 4.0, merge=self._seconds(self.merge)), compressed)

    def _seconds(self, curve: Curve, scale: float = 1.0) -> Curve:
        return Curve(curve.w * scale / 1e3, curve.b / 1e3, curve.o / 1e3)

    def cluster(self) -> Cluster:
        """Return links like those of the published ring step: 4 bytes / w, and b of latency."""
        step = self._seconds(self.ring_step)
        return Cluster(4 / step.w, latency=step.b, message=0.0, threads=1, task=0.0)

    @classmethod
    def from_json(cls, values: dict) -> PublishedProfile:
        """Return a profile from the values of its file."""
        return msgspec.convert(values, cls, str_keys=True)


def load() -> PublishedProfile:
    """Return the constants of the published cluster."""
    return PublishedProfile.from_json(json.loads((DATA / "sosp21.json").read_text()))


def at_nodes(curves: dict[int, Curve], n: int) -> Curve:
    """Return the curve for ``n`` nodes, interpolated or extrapolated from the measured ones."""
    if n in curves:
        return curves[n]
    known = {1: Curve(0.0, 0.0, 0.0), **curves}
    counts = sorted(known)
    high = next((i for i, count in enumerate(counts) if count > n), len(counts) - 1)
    low = high - 1
    left, right = known[counts[low]], known[counts[high]]
    part = (n - counts[low]) / (counts[high] - counts[low])

    def between(a: float, b: float) -> float:
        return a + part * (b - a)

    return Curve(between(left.w, right.w), between(left.b, right.b), between(left.o, right.o))


@dataclass(frozen=True)
class PublishedModel:
    """Published formulas for plans, for a topology with terms in them."""

    profile: PublishedProfile
    topology: Topology
    nodes: int
    ratio: float
    summed = True
    """Whether total() adds gradients up, one after the other."""

    @cached_property
    def counts(self) -> list[int]:
        """Numbers of partitions that the model allows, 1 to N; beyond 1000, in steps of 1%."""
        counts = list(range(1, min(self.nodes, 1000) + 1))
        while counts[-1] < self.nodes:
            counts.append(min(self.nodes, counts[-1] + counts[-1] // 100))
        return counts

    @cached_property
    def links(self) -> tuple[Curve, Curve]:
        """Curves of a gather and of a broadcast among the nodes."""
        return (
            at_nodes(self.profile.gather, self.nodes),
            at_nodes(self.profile.broadcast, self.nodes),
        )

    def milliseconds(self, x: int, k: int, compressed: bool) -> float:
        """Return the time of a gradient of ``x`` elements in ``k`` partitions."""
        profile, part = self.profile, self.ratio * x / k if compressed else x / k
        if self.nodes == 1:  # nothing is sent, so compression gains nothing
            return profile.encode(x / k) + profile.decode(part) if compressed else 0.0
        terms, (gather, broadcast) = self.topology.published(self.nodes, k), self.links
        found = terms.gather * gather(part) + terms.broadcast * broadcast(part)
        found += terms.step * profile.ring_step(part)
        if compressed:
            found += terms.encode * profile.encode(x / k)
            found += terms.decode * profile.decode(part)
        return found + terms.merge * profile.merge(x / k)

    def best(self, elements: int) -> Best:
        """Return the best partitioning of a gradient, uncompressed and compressed."""
        plain, compressed = (
            min((self.milliseconds(elements, k, compress), k) for k in self.counts)
            for compress in (False, True)
        )
        return _alone(*plain), _alone(*compressed)

    def total(self, gradients: Sequence[Needs]) -> float:
        """Return the seconds of gradients that are synchronized one after the other."""
        return sum(needs.seconds for needs in gradients)

    def choose(self, rows: Sequence[Best]) -> list[bool]:
        """Choose the gradients that are faster compressed."""
        return [raw.seconds > packed.seconds for (_, raw), (_, packed) in rows]


def _alone(milliseconds: float, partitions: int) -> tuple[int, Needs]:
    return partitions, Needs(milliseconds / 1e3, 0.0, 0.0, 0.0, 0.0)
