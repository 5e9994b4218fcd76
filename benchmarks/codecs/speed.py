"""Speed of every codec: share of the copy bandwidth, two threads, and peers, all in one run.

Figures are GB of float32 gradient per second, the fastest of many runs. "of copy" is the memory
traffic that the operation cannot avoid, as a share of memcpy's on one thread in the same run.
"reference" is that share in the project's reference measurements (reference.py), and "reached" is
our share divided by it. Peers are in peers.py; torch is measured if it can be imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.codecs.reference import WANTED, share
from benchmarks.common.jobs import MALLOC, built, node, separate_job
from benchmarks.common.options import Quick
from benchmarks.common.results import Record


def native(seconds: float, all_tables: bool, progress: Progress) -> list[dict]:
    """Build and run codec_bench; return one dict per measurement."""
    task = progress.add_task("building the benchmark", total=None)
    command = [str(built("codec_bench")), str(seconds), *(["all"] if all_tables else [])]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            row = json.loads(line)
            rows.append(row)
            what = f"{row['codec']} {row['operation']}, {row['kernels']}, {row['elements']}"
            progress.update(task, description=what)
    progress.remove_task(task)
    if process.returncode != 0:
        sys.exit(f"codec_bench failed with status {process.returncode}")
    return rows


def peer_rows(elements: int, seconds: float) -> list[dict]:
    """Return the measurements of peers.py, in a separate process that keeps its memory."""
    command = node("codecs.peers", elements=elements, seconds=seconds)
    timeout = 120 + 100 * seconds
    (found,) = separate_job(command, 1, MALLOC, timeout, priority=False)
    return found["rows"]


def speed_table(record: Record, rows: list[dict], elements: int) -> None:
    """Add the table of codecs with the best instruction set, with one thread and with two."""
    chosen = [row for row in rows if row["elements"] == elements and "threads" in row]
    best = next(row["kernels"] for row in chosen if row["threads"] == 2)
    ours = {
        (row["codec"], row["operation"], row["threads"]): row
        for row in chosen
        if row["kernels"] == best
    }
    table = []
    for (codec, operation, threads), row in ours.items():
        if threads != 1:
            continue
        reference = share(codec, operation)
        reached = "" if reference is None else f"{row['of_copy'] / reference:.0%}"
        if reference is not None and row["of_copy"] < WANTED * reference:
            reached += " (below)"
        two = ours.get((codec, operation, 2))
        table.append(
            [
                codec,
                operation,
                f"{row['gb_per_s']:.1f}",
                f"{row['bytes']:.1f}",
                f"{row['of_copy']:.0%}",
                "" if reference is None else f"{reference:.0%}",
                reached,
                "" if two is None else f"{two['gb_per_s'] / row['gb_per_s']:.2f}",
            ]
        )
    copies = sorted(row["copy_gb_per_s"] for row in chosen)
    title = (
        f"{elements:,} elements, {best}; memcpy reads + writes {copies[len(copies) // 2]:.1f} GB/s "
        f"(from {copies[0]:.1f} to {copies[-1]:.1f} in this run)"
    )
    header = ["codec", "operation", "GB/s", "bytes", "of copy", "reference", "reached", "2 threads"]
    record.table(header, table, title, f"speed-{elements}")


def width_table(record: Record, rows: list[dict], elements: int) -> None:
    """Add the table of maxmin with each width and instruction set, on one thread."""
    widths = {f"maxmin, {bits} bit{'s'[: bits > 1]}": bits for bits in range(1, 9)}
    rates = {
        (widths[row["codec"]], row["kernels"], row["operation"]): row["gb_per_s"]
        for row in rows
        if row["elements"] == elements and row["codec"] in widths and row.get("threads") == 1
    }
    sets = [name for name in ("baseline", "avx2", "avx512") if (8, name, "encode") in rates]
    table = [
        [
            str(bits),
            *(
                f"{rates[bits, name, operation]:.1f}"
                for name in sets
                for operation in ("encode", "decode")
            ),
        ]
        for bits in widths.values()
    ]
    heads = [f"{name}: {operation}" for name in sets for operation in ("encode", "decode")]
    title = f"{elements:,} elements, one thread: GB/s of maxmin by the width of its codes"
    record.table(["bits", *heads], table, title, f"widths-{elements}")


def summary_table(record: Record, rows: list[dict]) -> None:
    """Add the table of the documentation: a row for each codec, with the best instruction set."""
    native_rows = [row for row in rows if "threads" in row]
    best = next(row["kernels"] for row in native_rows if row["threads"] == 2)
    small, large = sorted({row["elements"] for row in native_rows})
    found = {
        (row["codec"], row["operation"], row["elements"], row["threads"]): row
        for row in native_rows
        if row["kernels"] == best
    }

    def speed(codec: str, operation: str, elements: int) -> str:
        return f"{found[codec, operation, elements, 1]['gb_per_s']:.1f}"

    def reached(codec: str, elements: int) -> str:
        reference = share(codec, "encode")
        if reference is None:
            return ""
        return f"{found[codec, 'encode', elements, 1]['of_copy'] / reference:.0%}"

    def gain(codec: str, operation: str) -> str:
        one = found[codec, operation, small, 1]["gb_per_s"]
        two = found[codec, operation, small, 2]["gb_per_s"]
        return f"{two / one:.2f}"

    cells = [
        [
            codec,
            f"{speed(codec, 'encode', small)}, {speed(codec, 'decode', small)}",
            reached(codec, small),
            *(speed(codec, operation, large) for operation in ("encode", "decode", "sum of 8")),
            f"{found[codec, 'encode', large, 1]['of_copy']:.0%}",
            reached(codec, large),
            f"{gain(codec, 'encode')}, {gain(codec, 'decode')}" if codec != "none" else "",
        ]
        for codec in dict.fromkeys(row["codec"] for row in native_rows if row["kernels"] == best)
    ]
    heads = [
        "",
        "in the cache: encode, decode",
        "encode: of the reference's share",
        "16 Mi: encode",
        "decode",
        "sum of 8",
        "encode: of copy",
        "of the reference's share",
        "2 threads in the cache: encode, decode",
    ]
    copies = [
        sorted(row["copy_gb_per_s"] for row in native_rows if row["elements"] == elements)
        for elements in (small, large)
    ]
    title = f"GB/s of float32 gradient, {best}; memcpy reads + writes GB/s: " + ", ".join(
        f"{values[len(values) // 2]:.1f} (from {values[0]:.1f} to {values[-1]:.1f})"
        for values in copies
    )
    record.table(heads, cells, title)


def peer_table(record: Record, rows: list[dict], elements: int) -> None:
    """Add the table of the best instruction set and the peers, on one thread."""
    chosen = [row for row in rows if row["elements"] == elements]
    best = next(row["kernels"] for row in chosen if row.get("threads") == 2)
    ours = {
        (row["codec"], row["operation"]): row["gb_per_s"]
        for row in chosen
        if row["kernels"] == best and row["threads"] == 1
    }
    table = []
    for row in chosen:
        peer = row["kernels"]
        if "what" not in row and peer != "naive loop":
            continue
        what, wanted = row.get("what"), row.get("wanted")
        if what is None:
            peer, what = "plain C++ loop", f"{row['codec']} {row['operation']}"
            if row["codec"] == "2bit":
                peer, wanted = "MXNet's 2bit loop, written again", 20
        ratio = ours[row["codec"], row["operation"]] / row["gb_per_s"]
        verdict = "" if wanted is None else f"{wanted}" + (" (below)" if ratio < wanted else "")
        table.append(
            [
                f"{row['codec']} {row['operation']}",
                f"{peer}: {what}",
                f"{row['gb_per_s']:.2f}",
                f"{ratio:.1f}",
                verdict,
            ]
        )
    header = ["ours", "peer", "its GB/s", "ours, times as fast", "wanted"]
    title = f"{elements:,} elements, one thread"
    record.table(header, table, title, f"peers-{elements}")


def peers_by_size(record: Record, sizes: list[int]) -> None:
    """Add the table of the documentation: how many times as fast as each peer, by size."""
    tables = [record["tables"][f"peers-{elements}"]["rows"] for elements in sizes]
    cells = [
        [ours, peer, wanted.removesuffix(" (below)"), times, other[3]]
        for (ours, peer, _, times, wanted), other in zip(*tables)
    ]
    heads = ["ours", "peer", "goal", "in the cache", "16 Mi"]
    record.table(heads, cells, "Times as fast as peers, on one thread", "peers")


def main(
    seconds: Annotated[float, typer.Option(help="For each measurement.")] = 0.3,
    everything: Annotated[
        bool, typer.Option("--all", help="Every instruction set (in the JSON).")
    ] = False,
    quick: Quick = False,
) -> None:
    if quick:
        seconds = 0.005
    record = Record("codecs", locals())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        rows = native(seconds, everything, progress)
        task = progress.add_task("NumPy and torch", total=None)
        sizes = sorted({row["elements"] for row in rows})
        for elements in sizes:
            rows += peer_rows(elements, seconds)
        progress.remove_task(task)
    for show in (speed_table, peer_table):
        for elements in sizes:
            show(record, rows, elements)
    width_table(record, rows, sizes[0])
    summary_table(record, rows)
    peers_by_size(record, sizes)
    record["rows"] = rows
    record.save()
