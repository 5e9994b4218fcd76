"""Speed of every codec: share of the copy bandwidth, two threads, and peers, all in one run.

Usage: python benchmarks/codecs/run.py [--seconds 0.3] [--all] [--markdown FILE] [--json FILE]

Figures are GB of float32 gradient per second, the fastest of many runs. "of copy" is the memory
traffic that the operation cannot avoid, as a share of what memcpy moves on one thread in the same
run. "reference" is that share in the project's reference measurements (reference.py), "reached"
ours over it. Peers are in peers.py; torch is measured if it can be imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peers import runs
from reference import WANTED, share
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def native(seconds: float, all_tables: bool, progress: Progress) -> list[dict]:
    """Builds and runs codec_bench; one dict per measurement."""
    task = progress.add_task("building the benchmark", total=None)
    build = [str(ROOT / "tools" / "setup.sh"), "native", "codec_bench"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(build)} failed:\n{done.stdout}{done.stderr}")
    command = [str(BUILD / "codec_bench"), str(seconds), *(["all"] if all_tables else [])]
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


def best_seconds(run: Callable[[], object], seconds: float) -> float:
    """The fastest of as many runs as fit into the given time, and at least two."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() > end:
            return best


def peer_rows(elements: int, seconds: float) -> list[dict]:
    return [
        {
            "kernels": peer, "codec": codec, "operation": operation, "what": what,
            "wanted": wanted, "elements": elements,
            "gb_per_s": elements * 4e-9 / best_seconds(run, seconds),
        }
        for peer, codec, operation, what, wanted, run in runs(elements)
    ]  # fmt: skip


def markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    line = ["---"] * 2 + ["---:"] * (len(header) - 2)
    return ["| " + " | ".join(row) + " |" for row in (header, line, *rows)]


def speed_table(rows: list[dict], elements: int) -> list[str]:
    """Codecs with the best instruction set: one thread, its share of the copy, two threads."""
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
        table.append([
            codec, operation, f"{row['gb_per_s']:.1f}", f"{row['bytes']:.1f}",
            f"{row['of_copy']:.0%}", "" if reference is None else f"{reference:.0%}", reached,
            "" if two is None else f"{two['gb_per_s'] / row['gb_per_s']:.2f}",
        ])  # fmt: skip
    copies = sorted(row["copy_gb_per_s"] for row in chosen)
    title = (
        f"{elements:,} elements, {best}; memcpy reads + writes {copies[len(copies) // 2]:.1f} GB/s "
        f"(from {copies[0]:.1f} to {copies[-1]:.1f} in this run)"
    )
    header = ["codec", "operation", "GB/s", "bytes", "of copy", "reference", "reached", "2 threads"]
    return [title, "", *markdown(header, table), ""]


def peer_table(rows: list[dict], elements: int) -> list[str]:
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
        table.append([
            f"{row['codec']} {row['operation']}", f"{peer}: {what}", f"{row['gb_per_s']:.2f}",
            f"{ratio:.1f}", verdict,
        ])  # fmt: skip
    header = ["ours", "peer", "its GB/s", "ours, times as fast", "wanted"]
    return [f"{elements:,} elements, one thread", "", *markdown(header, table), ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="time per measurement")
    parser.add_argument("--all", action="store_true", help="every instruction set (in the JSON)")
    parser.add_argument("--json", type=Path, help="also write all measurements to this file")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    arguments = parser.parse_args()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        rows = native(arguments.seconds, arguments.all, progress)
        task = progress.add_task("NumPy and torch", total=None)
        sizes = sorted({row["elements"] for row in rows})
        for elements in sizes:
            rows += peer_rows(elements, arguments.seconds)
        progress.remove_task(task)
    lines = [line for size in sizes for line in speed_table(rows, size)]
    lines += [line for size in sizes for line in peer_table(rows, size)]
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
