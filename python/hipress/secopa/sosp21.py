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
(:class:`hipress.casync.topology.Terms`); the tree's counts are not in the publication.

G and B were measured for 4, 8 and 16 nodes. In between, w, b and o are interpolated linearly in N;
below 4, on the line to 0 at N = 1 (where nothing is sent); above 16, the line through 8 and 16 goes
on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hipress.casync.topology import Topology
from hipress.secopa.curve import Curve

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class PublishedProfile:
    """A cluster's curves in the published form; milliseconds by float32 elements."""

    name: str
    source: str
    ratio: float
    encode: Curve
    decode: Curve
    merge: Curve
    ring_step: Curve
    gather: dict[int, Curve]
    broadcast: dict[int, Curve]

    @classmethod
    def from_json(cls, values: dict) -> PublishedProfile:
        """:raises KeyError, TypeError, ValueError: for a value that is missing or no number"""
        single = ("encode", "decode", "merge", "ring_step")
        return cls(
            name=values["name"],
            source=values["source"],
            ratio=float(values["ratio"]),
            **{name: Curve(**values[name]) for name in single},
            **{
                name: {int(n): Curve(**curve) for n, curve in values[name].items()}
                for name in ("gather", "broadcast")
            },
        )


def load() -> PublishedProfile:
    """The constants of the published cluster."""
    return PublishedProfile.from_json(json.loads((DATA / "sosp21.json").read_text()))


def at_nodes(curves: dict[int, Curve], n: int) -> Curve:
    """The curve for ``n`` nodes, between or beyond those measured."""
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
class Costs:
    """Milliseconds of a gradient's synchronisation, raw and compressed, by number of partitions."""

    raw: Callable[[int], float]
    compressed: Callable[[int], float]


def costs(profile: PublishedProfile, topology: Topology, nodes: int, x: int, ratio: float) -> Costs:
    """The formulas above for a gradient of ``x`` elements, for a topology that has terms in them.
    """
    n, r = nodes, ratio
    encode, decode, merge = profile.encode, profile.decode, profile.merge
    if n == 1:  # nothing is sent, so nothing is gained
        return Costs(lambda k: 0.0, lambda k: encode(x / k) + decode(r * x / k))
    gather, broadcast = at_nodes(profile.gather, n), at_nodes(profile.broadcast, n)

    def milliseconds(k: int, part: float, compressed: bool) -> float:
        """Time of ``k`` partitions, of which each travels as if it had ``part`` elements."""
        terms = topology.published(n, k)
        found = terms.gather * gather(part) + terms.broadcast * broadcast(part)
        found += terms.step * profile.ring_step(part)
        if compressed:
            found += terms.encode * encode(x / k)
            found += terms.decode * decode(part)
        return found + terms.merge * merge(x / k)

    return Costs(
        lambda k: milliseconds(k, x / k, False), lambda k: milliseconds(k, r * x / k, True)
    )
