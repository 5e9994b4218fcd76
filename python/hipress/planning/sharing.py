"""Limits of what the executor puts together, those of src/kvstore/fused.h and executor.h.

Small payloads for one peer that are ready together travel as one message, and small tasks that are
ready together are one job of a compute thread. A test holds these numbers to the C++ headers.
"""

from __future__ import annotations

from hipress.topology.graph import PARTITION_ELEMENTS

HEADER = 64
"""Bytes of a message's header (``MessageHeader``)."""
PART_HEADER = 40
"""Bytes that say of a part what a header says of a message (``FusedPart``)."""
SHARED_PAYLOAD = 4 << 10
"""Payloads of at most so many bytes share a message (``kMaxFusedPayloadBytes``)."""
SHARED_BYTES = 32 << 10
"""The payload of a shared message has at most so many (``kMaxFusedMessageBytes``)."""
JOB_ELEMENTS = PARTITION_ELEMENTS
"""Elements that tasks of one job go through at most, unless it is one (``kJobElements``)."""


def part_bytes(message: float) -> float:
    """Return the bytes of what would be a message of ``message`` bytes, header included, in a
    shared one."""
    return PART_HEADER + -(-(message - HEADER) // 8) * 8


def is_small(message: float) -> bool:
    """Return whether a message of so many bytes, header included, may share one."""
    return message - HEADER <= SHARED_PAYLOAD
