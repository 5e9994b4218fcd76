"""Throughput of HiPress's transport and of a plain epoll loop between two local processes."""

from __future__ import annotations

import subprocess

import typer

from benchmarks.common.jobs import built
from benchmarks.common.options import Quick
from benchmarks.common.results import Record


def main(repetitions: int = 5, quick: Quick = False) -> None:
    if quick:
        repetitions = 1
    record = Record("transport", locals())
    command = [str(built("transport_bench")), str(repetitions)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    record["printed"] = done.stdout
    record.save()
    raise typer.Exit(done.returncode)
