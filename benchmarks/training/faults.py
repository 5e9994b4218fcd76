"""How long an elastic job takes to go on after each kind of fault; needs root for cut links.

Runs tests/nightly/chaos_elastic.py: workers train a small network in network namespaces, and are
killed, stopped for good or for 3 seconds, and cut off, some of them two at once. All weights are
compared after every step.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record
from harness import ROOT

KINDS = {
    "kill": "killed",
    "double": "two killed, one soon after the other",
    "stop": "stopped for good",
    "pause": "stopped for 3 s",
    "cut": "link cut",
    "launcher": "launcher killed",
}


def main(
    workers: Annotated[int, typer.Option(min=2)] = 5,
    faults: Annotated[int, typer.Option(min=1)] = 60,
    seed: int = 11,
    earlier: Annotated[Path, typer.Option(help="JSON of an earlier run of the driver.")] = None,
    output: Output = "elastic-faults",
    quick: Quick = False,
) -> None:
    if quick:
        workers, faults = 3, 2
    record = Record(output, locals())
    found = json.loads(earlier.read_text()) if earlier else _run(workers, faults, seed)
    record.update({name: value for name, value in found.items() if name != "command"})
    found = record["summary"]
    counts = Counter(fault["kind"] for fault in record["faults"])
    rows = [
        [
            KINDS[kind],
            counts[kind],
            _cell(cost["next_step_s"], "{:.2f} ({:.2f})"),
            _cell(cost["rejoin_s"], "{:.2f} ({:.2f})"),
            _cell(cost["steps_lost"], "{:.0f} ({:.0f})"),
        ]
        for kind, cost in found["by_kind"].items()
    ]
    heads = ["fault", "times", "next step of the others, s", "successor's first step, s", "lost"]
    title = (
        f"{record['workers']} workers, heartbeat limit {record['heartbeat_ms'] / 1e3:g} s; "
        f"{found['faults']} faults in {found['steps']} steps, {len(found['wrong'])} things wrong; "
        "medians (worst)"
    )
    record.table(heads, rows, title)
    record.save()


def _run(workers: int, faults: int, seed: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chaos.json")
        driver = str(ROOT / "tests" / "nightly" / "chaos_elastic.py")
        options = {"workers": workers, "faults": faults, "seed": seed, "network": "namespaces"}
        words = [f"--{name}={value}" for name, value in options.items()]
        subprocess.run([sys.executable, driver, *words, "--json", str(path)], check=False)
        return json.loads(path.read_text())


def _cell(spread: dict[str, float | None], form: str) -> str:
    values = spread["median"], spread["worst"]
    return "" if None in values else form.format(*values)
