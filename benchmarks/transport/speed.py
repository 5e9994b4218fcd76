"""Throughput of HiPress's transport and of a plain epoll loop between two local processes."""

from __future__ import annotations

import re
import subprocess

import typer

from benchmarks.common.jobs import built
from benchmarks.common.options import Quick
from benchmarks.common.results import Record

LABEL = 36
"""Width of the column with the name of a row."""
CELL = re.compile(r"(\d+\.\d+)(?: \((\d+\.\d+) cpu s/GB\))?")


def cells(line: str) -> list[str]:
    """Return the row of a table for a line that the program printed."""
    row = [line[:LABEL].strip()]
    for value, processor in CELL.findall(line[LABEL:]):
        row.append(f"{value} ({float(processor):.2f})" if processor else value)
    return row


def main(repetitions: int = 5, quick: Quick = False) -> None:
    if quick:
        repetitions = 1
    record = Record("transport", locals())
    command = [str(built("transport_bench")), str(repetitions)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        _, *rows = map(cells, done.stdout.splitlines())
        heads = ["message", "bare epoll", "ours", "ours, TLS", "ours, shared memory", "ours/epoll"]
        record.table(heads, rows, "Two processes on loopback (CPU s per GB of both sides)")
    record["printed"] = done.stdout
    record.save()
    raise typer.Exit(done.returncode)
