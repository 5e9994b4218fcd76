"""Training with frequently killed workers, compared with undisturbed training.

Four workers train a small network on real digits (examples/torch/elastic.py). In the disturbed jobs
a random worker is killed every few seconds, and its successor joins as soon as it has started. With
--sync-every they synchronize weights every so many steps (DiLoCo), and with --sync-delay weights
are sent during so many further steps.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Nodes, Output, Quick, Seeds
from benchmarks.common.results import Record
from harness import ROOT
from harness.elastic import ElasticJob
from harness.processes import wait_until


def main(
    compression: Annotated[str, typer.Option(help="Types.")] = "none onebit",
    seeds: Seeds = "1 2 3",
    nodes: Nodes = 4,
    steps: int = 1500,
    every: Annotated[float, typer.Option(help="Seconds between two kills.")] = 4.0,
    sync_every: Annotated[int, typer.Option(help="Steps of a round; 0: without rounds.")] = 0,
    sync_delay: Annotated[int, typer.Option(help="Steps that weights may travel.")] = 0,
    output: Output = "survival",
    quick: Quick = False,
) -> None:
    if quick:
        compression, seeds, steps, every = "onebit", "1", 600, 3.0
    record = Record(output, locals())
    rows = []
    for kind in compression.split():
        for disturbed in (False, True):
            found = [
                _train(
                    kind,
                    int(seed),
                    nodes,
                    steps,
                    every if disturbed else 0.0,
                    sync_every,
                    sync_delay,
                )
                for seed in seeds.split()
            ]
            record[f"{kind}, {'disturbed' if disturbed else 'undisturbed'}"] = found
            about = "workers killed" if disturbed else "undisturbed"
            rows.append(
                [
                    f"`{kind}`, {about}",
                    sum(each["kills"] for each in found),
                    _span([each["loss"] for each in found], "{:.4f}"),
                    _span([100 * each["accuracy"] for each in found], "{:.2f}%"),
                ]
            )
    heads = ["", "kills", "loss of the last 100 steps", "right test images"]
    rounds = f" in rounds of {sync_every}" if sync_every else ""
    rounds += f" with a delay of {sync_delay}" if sync_delay else ""
    title = f"{nodes} workers, {steps} steps{rounds}, mean of the seeds (lowest to highest)"
    record.table(heads, rows, title)
    record.save()


def _span(values: list[float], form: str) -> str:
    """Return the mean of values, and their range, as text."""
    mean, low, high = (form.format(f(values)) for f in (statistics.mean, min, max))
    return f"{mean} ({low} to {high})"


def _train(
    compression: str,
    seed: int,
    workers: int,
    steps: int,
    every: float,
    sync_every: int,
    sync_delay: int,
) -> dict:
    """Run one training.

    Args:
        every: Seconds between two kills; 0: no worker is killed.
        sync_every: Inner steps per outer step; 0: without outer steps.
        sync_delay: Steps during which weights may be sent.
    """
    command = [sys.executable, str(ROOT / "examples" / "torch" / "elastic.py")]
    command += ["--compression", compression, "--steps", str(steps), "--seed", str(seed)]
    command += ["--sync-every", str(sync_every), "--sync-delay", str(sync_delay)]
    chance, kills = random.Random(seed), 0
    with ElasticJob(command, workers, env=jobs.environment(), heartbeat_ms=3500) as job:
        next_kill = time.monotonic() + 2 * every
        while True:
            time.sleep(0.5)
            last = _last_steps(job, workers)
            reached = max((event["step"] for event in last), default=0)
            if reached > steps - 200 or time.monotonic() > next_kill + 300:
                break
            for slot in range(workers):
                if job.present(slot) not in job.running():
                    job.restart(slot)
            whole = [event["size"] for event in last] == [workers] * workers
            if every and whole and time.monotonic() > next_kill:
                job.kill(chance.randrange(workers))
                kills, next_kill = kills + 1, time.monotonic() + every
        wait_until(lambda: 0 in _statuses(job), 120, "the end of training")
        time.sleep(2)  # for workers at the same step
        losses: dict[int, list[float]] = {}
        for slot in range(workers):
            for event in job.journal(slot):
                if event["event"] == "step" and event["step"] > steps - 100:
                    losses.setdefault(event["step"], []).append(event["loss"])
        right = re.findall(r"steps: ([0-9.]+) of the test", job.report())
    mean = statistics.mean(statistics.mean(each) for each in losses.values())
    return {"seed": seed, "kills": kills, "loss": mean, "accuracy": float(right[-1])}


def _statuses(job: ElasticJob) -> list[int | None]:
    job.running()
    return [process.returncode for process in job.processes.values()]


def _last_steps(job: ElasticJob, workers: int) -> list[dict]:
    """Return each slot's last step."""
    found = [[e for e in job.journal(w) if e["event"] == "step"][-1:] for w in range(workers)]
    return [event for each in found for event in each]
