"""Limits for shared messages and jobs, which equal those of src/kvstore/fused.h and executor.h.

Small payloads for one peer that are ready together share a message. Small tasks that are ready
together are one job of a compute thread. A test compares these numbers with the C++ headers.
"""

from __future__ import annotations

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
