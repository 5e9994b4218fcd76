"""Recovery time of an elastic job after each kind of fault; needs root for cut links.

The benchmark runs tests/nightly/chaos_elastic.py: workers train a small network in network
namespaces. They are killed, stopped for good or for 3 seconds, and cut off, sometimes two at once,
and their supervisors are killed. All weights are compared after every step. With --peer, torchft's
DDP over Gloo, uncompressed, then gets the same faults, with the same limit of silence. Its wheels
are installed in build/torchft.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record
from benchmarks.training import torchft_peer
from harness import ROOT

KINDS = {
    "kill": "killed",
    "double": "two killed, one soon after the other",
    "stop": "stopped for good",
    "pause": "stopped for 3 s",
    "cut": "link cut",
    "supervisor": "a worker's supervisor killed",
    "launcher": "launcher killed",
}
LIGHTHOUSE = (
    f"{sys.executable} {torchft_peer.FOLDER}/bin/torchft_lighthouse --min_replicas 2 "
    "--join_timeout_ms 3500 --heartbeat_timeout_ms 3500 --bind {address}:29510"
)


def main(
    workers: Annotated[int, typer.Option(min=4)] = 5,
    faults: Annotated[int, typer.Option(min=1)] = 60,
    seed: int = 11,
    kinds: Annotated[str, typer.Option(help="Of faults; default: all.")] = "",
    peer: Annotated[bool, typer.Option("--peer", help="torchft, too, on the same faults.")] = False,
    script: Annotated[
        str, typer.Option(help="What workers run; default: examples/torch/elastic.py.")
    ] = "",
    earlier: Annotated[Path, typer.Option(help="JSON of an earlier run of the driver.")] = None,
    output: Output = "elastic-faults",
    quick: Quick = False,
) -> None:
    if quick:
        workers, faults = 4, 2
    record = Record(output, locals())
    words = [f"--workers={workers}", f"--faults={faults}", f"--seed={seed}"]
    if kinds:
        words.append(f"--kinds={kinds}")
    found = _read(earlier) if earlier else _run([*words, "--", *shlex.split(script)])
    record.update(found)
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
    heads = ["fault", "times", "next step of other workers, s", "successor's first step, s", "lost"]
    title = (
        f"{record['workers']} workers, heartbeat limit {record['heartbeat_ms'] / 1e3:g} s; "
        f"{found['faults']} faults in {found['steps']} steps, {len(found['wrong'])} things wrong; "
        "medians (worst)"
    )
    record.table(heads, rows, title)
    if peer:
        record["torchft"] = theirs = _run_torchft(words)
        _compare(record, found, theirs["summary"], Counter(f["kind"] for f in theirs["faults"]))
    record.save()


def _compare(record: Record, ours: dict, theirs: dict, counts: Counter) -> None:
    form = "{:.2f} ({:.2f})"
    rows = [
        [
            KINDS[kind],
            counts[kind],
            *(_cell(system["by_kind"][kind]["next_step_s"], form) for system in (ours, theirs)),
            *(_cell(system["by_kind"][kind]["rejoin_s"], form) for system in (ours, theirs)),
        ]
        for kind in ours["by_kind"]
        if kind in theirs["by_kind"]
    ]
    heads = [
        "fault",
        "times",
        "next step of other workers, s",
        "torchft",
        "successor's first step, s",
        "torchft",
    ]
    title = (
        f"beside torchft's DDP: {theirs['faults']} faults in {theirs['steps']} steps, "
        f"{len(theirs['wrong'])} things wrong; medians (worst)"
    )
    record.table(heads, rows, title, key="torchft")


def _run(words: list[str], environment: dict[str, str] | None = None) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chaos.json")
        driver = str(ROOT / "tests" / "nightly" / "chaos_elastic.py")
        command = [sys.executable, driver, "--network=namespaces", "--json", str(path), *words]
        done = subprocess.run(command, env={**os.environ, **(environment or {})}, check=False)
        if not path.exists():  # it has printed the reason
            sys.exit(done.returncode)
        return _read(path)


def _read(path: Path) -> dict:
    found = json.loads(path.read_text())
    return {name: value for name, value in found.items() if name != "command"}


def _run_torchft(words: list[str]) -> dict:
    torchft_peer.install()
    paths = os.pathsep.join(map(str, [torchft_peer.FOLDER, ROOT]))
    variables = ["TORCHFT_LIGHTHOUSE=http://{address}:29510", "RUST_LOG=warn"]
    worker = [sys.executable, "-m", "benchmarks.training.torchft_worker"]
    own = ["--also", LIGHTHOUSE, *(f"--env={each}" for each in variables), "--", *worker]
    return _run([*words, *own], {"PYTHONPATH": paths})


def _cell(spread: dict[str, float | None], form: str) -> str:
    values = spread["median"], spread["worst"]
    return "" if None in values else form.format(*values)
