"""One thread's speed of every codec beside a plain loop, NumPy and torch's casts, in one run.

Usage: python benchmarks/codecs/run.py [--seconds 0.3] [--json FILE]

Figures are GB of float32 gradient per second, the fastest of many runs. In brackets is the memory
traffic that the operation cannot avoid, as a share of what memcpy moves in the same run: 100% means
that the memory is the limit. torch is measured if it can be imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
THRESHOLD = np.float32(0.5)


def native(seconds: float, progress: Progress) -> list[dict]:
    """Builds and runs codec_bench; one dict per measurement."""
    task = progress.add_task("building the benchmark", total=None)
    build = [str(ROOT / "tools" / "setup.sh"), "native", "codec_bench"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(build)} failed:\n{done.stdout}{done.stderr}")
    command = [str(BUILD / "codec_bench"), str(seconds)]
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


def numpy_two_bit(gradient: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """2bit encode as one writes it in NumPy."""
    residual += gradient
    high, low = residual >= THRESHOLD, residual <= -THRESHOLD
    residual -= THRESHOLD * high
    residual += THRESHOLD * low
    bits = np.empty((gradient.size, 2), bool)
    bits[:, 0] = high | low
    bits[:, 1] = high
    return np.packbits(bits)


def numpy_onebit(gradient: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """onebit encode as one writes it in NumPy."""
    residual += gradient
    bits = residual >= 0
    above, below = residual[bits].mean(), residual[~bits].mean()
    residual -= np.where(bits, above, below)
    return np.packbits(bits)


def python_peers(elements: int, seconds: float) -> list[dict]:
    """The same operations in NumPy, and torch's casts to half precision on one thread."""
    generator = np.random.default_rng(1)
    gradient = generator.normal(0, 0.5, elements).astype(np.float32)
    residual = np.zeros_like(gradient)
    runs: list[tuple[str, str, str, Callable[[], object]]] = [
        ("NumPy", "2bit", "encode", lambda: numpy_two_bit(gradient, residual)),
        ("NumPy", "onebit", "encode", lambda: numpy_onebit(gradient, residual)),
    ]
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        source = torch.from_numpy(gradient)
        for name in ("float16", "bfloat16"):
            target = torch.empty(elements, dtype=getattr(torch, name))
            runs.append(("torch", name, "convert", lambda t=target, s=source: t.copy_(s)))
    return [
        {
            "kernels": peer,
            "codec": codec,
            "operation": operation,
            "elements": elements,
            "gb_per_s": elements * 4 / best_seconds(run, seconds) * 1e-9,
        }
        for peer, codec, operation, run in runs
    ]


def show(rows: list[dict], console: Console) -> None:
    """A table per size; columns are instruction sets and peers."""
    for elements in sorted({row["elements"] for row in rows}):
        chosen = [row for row in rows if row["elements"] == elements]
        copy = next(row["copy_gb_per_s"] for row in chosen if "copy_gb_per_s" in row)
        columns = list(dict.fromkeys(row["kernels"] for row in chosen))
        table = Table(
            title=f"{elements:,} float32 elements; memcpy reads + writes {copy:.1f} GB/s",
            title_justify="left",
        )
        table.add_column("codec")
        table.add_column("operation")
        for column in columns:
            table.add_column(column, justify="right")
        for codec, operation in dict.fromkeys((r["codec"], r["operation"]) for r in chosen):
            cells = []
            for column in columns:
                match = [
                    row
                    for row in chosen
                    if (row["kernels"], row["codec"], row["operation"])
                    == (column, codec, operation)
                ]
                text = f"{match[0]['gb_per_s']:.1f}" if match else ""
                if match and "of_copy" in match[0]:
                    text += f" ({match[0]['of_copy']:.0%})"
                cells.append(text)
            table.add_row(codec, operation, *cells)
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="time per measurement")
    parser.add_argument("--json", type=Path, help="also write all measurements to this file")
    arguments = parser.parse_args()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        rows = native(arguments.seconds, progress)
        task = progress.add_task("NumPy and torch", total=None)
        for elements in sorted({row["elements"] for row in rows}):
            rows += python_peers(elements, arguments.seconds)
        progress.remove_task(task)
    show(rows, Console())
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
