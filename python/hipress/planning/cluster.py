"""Speeds of hosts and links, and costs of codecs on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hipress.planning import sharing
from hipress.planning.curve import Curve

ZERO = Curve(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Cluster:
    """Hosts that all are alike, on a network without bottlenecks inside (a full-bisection switch).

    A host sends one message at a time and receives one at a time, each at ``bandwidth`` (full
    duplex); senders that share a receiver wait for each other, there.
    """

    bandwidth: float
    """Bytes a second of one host's link, each direction."""
    latency: float = 50e-6
    """Seconds from the sender's first byte to the receiver's; more messages may be under way."""
    message: float = 5e-6
    """Seconds that a message takes of its sender's link whatever its size."""
    burst: float = 0.0
    """Bytes that pass at once after a pause, before ``bandwidth`` holds: shaped links do so."""
    buffer: float = 4 << 20
    """Bytes that a host hands to its link ahead, in the order in which they come; only what waits
    behind them goes by priority. The transport asks the kernel for 4 MiB."""
    local: Curve = Curve(0.0, 50e-6, 0.0)
    """Seconds of a message between processes of one host, by bytes."""
    threads: float = 2
    """Tasks that a host computes at a time (a whole number, to simulate)."""
    task: float = 5e-6
    """Seconds of processor that any task takes beside its codec."""
    handling: float = 0.0
    """Seconds of processor that a message takes of its sender and receiver together. Hosts apart do
    that beside codecs; it matters where they share processors."""
    part: float | None = None
    """Seconds of processor that one more small payload in a message takes of its sender and
    receiver together; None: it is not known, and each payload is a message of its own."""
    shared_hosts: bool = False
    """All nodes are on one machine, whose ``threads`` they share (namespaces, containers)."""
    node_threads: int | None = None
    """Of shared ``threads``, those that one node takes at a time, at most; None: all."""
    devices: int = 1
    """Devices per host, whose gradients are summed before and copied after."""
    device_bandwidth: float = 60e9
    """Bytes a second of a link between the devices of a host."""

    def share(self, nodes: int) -> float:
        """Threads of one of ``nodes`` nodes; of a machine that they share, a part."""
        if not self.shared_hosts:
            return self.threads
        return min(self.threads / nodes, self.node_threads or self.threads)

    def alone(self, nodes: int) -> tuple[Cluster, float]:
        """Return one node's part of a machine that ``nodes`` share, and how many times as long its
        tasks take.

        All nodes compute at the same time. Where threads do not divide evenly, a node has one more
        than its share, each of which is slower.
        """
        share = self.share(nodes)
        threads = math.ceil(share)
        return replace(self, threads=threads), threads / share

    def device_seconds(self, elements: int) -> float:
        """Return the seconds of a reduction over one host's devices; the copy back takes as long
        again.

        A ring over d devices moves (d-1)/d of the gradient each way.
        """
        return 4 * elements * (self.devices - 1) / self.devices / self.device_bandwidth


@dataclass(frozen=True)
class Codec:
    """One codec's costs; curves give seconds by elements."""

    name: str
    bytes_per_element: float
    fixed_bytes: float = 0.0
    encode: Curve = ZERO
    decode: Curve = ZERO
    merge: Curve = ZERO
    """Decoding several payloads and adding them, in one pass: by elements x payloads."""
    add: Curve | None = None
    """Decoding a payload and adding it to the node's own gradient, by elements; None: as merging
    two payloads."""
    merge_separately: bool = False
    """``merge`` is by elements, and each payload costs it again (the published system)."""

    def payload(self, elements: int) -> float:
        """Return the bytes of an encoded gradient, the message's header (64) included."""
        return sharing.HEADER + self.fixed_bytes + self.bytes_per_element * elements

    def merge_seconds(self, elements: int, payloads: int, own: bool = False) -> float:
        """Return the seconds of summing that many payloads of ``elements`` each, and the own
        gradient."""
        if own and self.add is not None:
            return self.add(elements * payloads)
        payloads += own and not self.merge_separately
        if self.merge_separately:
            return payloads * self.merge(elements)
        return self.merge(elements * payloads)


@dataclass(frozen=True)
class Costs:
    """Both codecs of a planned job: what is compressed goes by the one, the rest by the other."""

    plain: Codec
    compressed: Codec
