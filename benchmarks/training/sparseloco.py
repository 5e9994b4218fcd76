"""Bytes of a synchronization by SparseLoCo's setting with headers, and codes of positions.

A GPT on two ranks, `DiLoCo.sparseloco` in a star: one of them only sends its pseudo-gradients, so
its sent bytes are those of one synchronization. All its pseudo-gradients are also encoded outside
of the job to analyze the positions: bits per position by Elias and Fano, by Rice's code as in the
codec, and the minimum for random positions. "GB/s" are of gradient, on one thread, on the largest
pseudo-gradient, also for the same program with `pack_ascending`.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record, verdict

PUBLISHED = 12 + 2
"""Bits per sent element: arXiv:2508.15706, arXiv:2603.08163."""
WANTED, WANTED_BITS = 200, 7.6


def main(
    width: int = 512,
    layers: int = 4,
    sync_every: int = 30,
    synchronizations: Annotated[int, typer.Option(help="The first one is not counted.")] = 4,
    batch_size: int = 2,
    seconds: Annotated[float, typer.Option(help="For each time that is measured.")] = 1.0,
    output: Output = "sparseloco",
    quick: Quick = False,
) -> None:
    if quick:
        width, layers, sync_every, synchronizations, seconds = 128, 1, 2, 2, 0.02
    options = {
        "width": width,
        "layers": layers,
        "sync_every": sync_every,
        "batch_size": batch_size,
        "synchronizations": synchronizations,
        "seconds": seconds,
    }
    record = Record(output, options)
    found = jobs.reports(
        jobs.torch_job(jobs.node("training.sparseloco_node", **options), 2, None, 1500)
    )
    (seen,), sent = [r for r in found if "bits" in r], min(r["sent"] for r in found)
    each = statistics.fmean(sent[1:])
    weights, payloads = seen["weights"], statistics.fmean(seen["payloads"][1:])
    published = weights * 64 / 4096 * PUBLISHED / 8
    rows = [
        ["float32", f"{4 * weights:,}", "1"],
        [
            "published: 14 bits for each that is sent, no headers",
            f"{published:,.0f}",
            f"{4 * weights / published:.0f}",
        ],
        ["`DiLoCo.sparseloco`, payloads", f"{payloads:,.0f}", f"{4 * weights / payloads:.0f}"],
        [
            "`DiLoCo.sparseloco`, with messages' headers",
            f"{each:,.0f}",
            f"{4 * weights / each:.0f}",
        ],
    ]
    title = f"one rank's pseudo-gradient of {weights:,} weights, in {seen['parameters']} parameters"
    record.table(["", "bytes", "times fewer than float32"], rows, title, key="bytes")
    names = {"fixed": "`pack_ascending` (Elias and Fano)", "coded": "`pack_gaps` (Rice)"}
    rows = [
        [
            name,
            f"{seen['bits'][key]:.2f}",
            f"{seen['speed'][key][0]:.1f}",
            f"{seen['speed'][key][1]:.1f}",
        ]
        for key, name in names.items()
    ]
    rows.append(["random positions, at least", f"{seen['bits']['entropy']:.2f}", "", ""])
    heads = ["", "bits of a position", "encode GB/s", "decode GB/s"]
    record.table(heads, rows, f"{seen['largest']:,} elements", key="positions")
    record["samples"] = found
    record.save()
    verdict(4 * weights / each >= WANTED, f"{WANTED} times fewer bytes, headers included")
    verdict(seen["bits"]["coded"] < WANTED_BITS, f"fewer than {WANTED_BITS} bits of a position")
