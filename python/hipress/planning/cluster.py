"""Speeds of hosts and links, costs of codecs on them, and limits for shared messages and jobs.

Small payloads for one peer that are ready together share a message. Small tasks that are ready
together are one job of a compute thread. The limits equal those of src/kvstore/fused.h and
executor.h. A test compares these numbers with the C++ headers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional

from hipress.planning.curve import Curve
from hipress.topology.graph import PARTITION_ELEMENTS

HEADER = 64
"""Bytes of a message's header (``MessageHeader``)."""
PART_HEADER = 40
"""Bytes of a part's header in a shared message (``FusedPart``)."""
SHARED_PAYLOAD = 4 << 10
"""Largest payload that shares a message, in bytes (``kMaxFusedPayloadBytes``)."""
SHARED_BYTES = 32 << 10
"""Largest payload of a shared message, in bytes (``kMaxFusedMessageBytes``)."""
JOB_ELEMENTS = PARTITION_ELEMENTS
"""Largest number of elements of all tasks of a job, unless it is one task (``kJobElements``)."""


def part_bytes(message: float) -> float:
    """Return the bytes in a shared message of a single message of ``message`` bytes with header."""
    return PART_HEADER + -(-(message - HEADER) // 8) * 8


def is_small(message: float) -> bool:
    """Return whether a message of so many bytes, with header, may share one."""
    return message - HEADER <= SHARED_PAYLOAD


ZERO = Curve(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Cluster:
    """Identical hosts on a network without internal bottlenecks (a full-bisection switch).

    A host sends one message at a time and receives one at a time, each at ``bandwidth`` (full
    duplex). Senders with the same receiver wait for each other at the receiver.
    """

    bandwidth: float
    """Bytes per second of one host's link, in each direction."""
    latency: float = 50e-6
    """Seconds from the sender's first byte to the receiver's. Messages may overlap in it."""
    message: float = 5e-6
    """Seconds that any message occupies its sender's link, in addition to its bytes."""
    burst: float = 0.0
    """Bytes that pass at once after a pause, before ``bandwidth`` applies, as on shaped links."""
    buffer: float = 4 << 20
    """Bytes that a host passes to its link in advance, in order of arrival. Only later messages are
    ordered by priority. The transport requests 4 MiB from the kernel."""
    local: Curve = Curve(0.0, 50e-6, 0.0)
    """Seconds of a message between processes of one host, by bytes."""
    threads: float = 2
    """Number of tasks that a host computes at a time, a whole number in simulations."""
    task: float = 5e-6
    """Processor seconds of each task, in addition to its codec."""
    handling: float = 0.0
    """Processor seconds of a message on its sender and receiver together. Separate hosts do that in
    parallel to codecs. It matters if nodes share processors."""
    part: float | None = None
    """Processor seconds of one more small payload in a message, on its sender and receiver
    together. None: unknown; each payload is then a separate message."""
    shared_hosts: bool = False
    """Whether all nodes share the ``threads`` of one machine (namespaces, containers)."""
    node_threads: int | None = None
    """Largest number of shared ``threads`` that one node uses at a time; None: all."""
    devices: int = 1
    """Devices per host. Their gradients are summed before, and the result is copied after."""
    device_bandwidth: float = 60e9
    """Bytes per second of a link between the devices of a host."""

    def share(self, nodes: int) -> float:
        """Return one node's threads, a share of them if ``nodes`` nodes share a machine."""
        if not self.shared_hosts:
            return self.threads
        return min(self.threads / nodes, self.node_threads or self.threads)

    def alone(self, nodes: int) -> tuple[Cluster, float]:
        """Return one node's share of a machine that ``nodes`` share, and the slowdown of its tasks.

        All nodes compute at the same time. If threads do not divide evenly, a node has one thread
        more than its share, each of which is slower.
        """
        share = self.share(nodes)
        threads = math.ceil(share)
        return replace(self, threads=threads), threads / share

    def device_seconds(self, elements: int) -> float:
        """Return the seconds of a ring's reduction over a host's devices, and of its copy back."""
        return 4 * elements * (self.devices - 1) / self.devices / self.device_bandwidth


@dataclass(frozen=True)
class Codec:
    """Costs of one codec. Curves give seconds by elements."""

    name: str
    bytes_per_element: float
    fixed_bytes: float = 0.0
    encode: Curve = ZERO
    decode: Curve = ZERO
    merge: Curve = ZERO
    """Decoding and adding several payloads in one pass, by elements x payloads."""
    add: Optional[Curve] = None  # noqa: UP045 (Python 3.9)
    """Decoding a payload and adding it to the node's own gradient, by elements. None: the same as
    merging two payloads."""
    merge_separately: bool = False
    """Whether each payload costs ``merge`` by elements, as in the published system."""

    def payload(self, elements: int) -> float:
        """Return the bytes of an encoded gradient, including the message's header (64)."""
        return HEADER + self.fixed_bytes + self.bytes_per_element * elements

    def merge_seconds(self, elements: int, payloads: int, own: bool = False) -> float:
        """Return the seconds of summing payloads of ``elements`` each, and the ``own`` gradient."""
        if own and self.add is not None:
            return self.add(elements * payloads)
        payloads += own and not self.merge_separately
        if self.merge_separately:
            return payloads * self.merge(elements)
        return self.merge(elements * payloads)


@dataclass(frozen=True)
class Costs:
    """Codecs of a planned job: one for compressed gradients, one for all others."""

    plain: Codec
    compressed: Codec
