"""Reference measurements of the project: speeds of hand-tuned kernels, as shares of the copy.

One thread of a Zen 4 core, 16 Mi float32, memcpy reading + writing 37.7 GB/s. Each entry is (bytes
moved for an element, GB/s of gradient); their product over 4 and 37.7 is the share of the copy.
"""

from __future__ import annotations

COPY_GB_PER_S = 37.7
MEASURED = {
    ("onebit", "encode"): (12.1, 14.8),
    ("2bit", "encode"): (12.3, 14.0),
    ("tbq", "encode"): (12.3, 14.0),
    ("2bit", "decode"): (4.3, 26.0),
    ("tbq", "decode"): (4.3, 26.0),
    ("terngrad, 8 bits", "encode"): (9.0, 9.0),
    ("maxmin, 8 bits", "encode"): (5.0, 12.3),
    ("maxminef, 8 bits", "encode"): (13.0, 9.0),
    ("dgc, 0.1%", "encode"): (12.0, 13.4),
    ("dgc, 1%", "encode"): (12.0, 11.2),
    ("graddrop, 1%", "encode"): (12.1, 14.4),
}
"""Measurements. dgc was measured without the momentum's 8 bytes, but shares of the copy compare."""
WANTED = 0.85
"""Part of the reference's share that generated code must reach."""


def share(codec: str, operation: str) -> float | None:
    """Return the reference's share of the copy bandwidth, or None without a measurement."""
    found = MEASURED.get((codec, operation))
    return None if found is None else found[0] * found[1] / 4 / COPY_GB_PER_S
