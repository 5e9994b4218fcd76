"""What it costs to be elastic while nothing fails: steps of elastic training beside others.

The same training, with DistributedOptimizer as the ranks of a process group, and as the workers of
an elastic job, in turn, each as a job of its own. A step's time is its slowest worker's.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Nodes, Output, Priority, Quick, Rounds
from benchmarks.common.results import Record
from harness.elastic import ElasticJob

MODES = ("not elastic", "elastic")


def main(
    compression: Annotated[str, typer.Option(help="Types.")] = "onebit",
    model: Annotated[str, typer.Option(help="vgg or gpt.")] = "vgg",
    nodes: Nodes = 4,
    steps: int = 20,
    batch_size: Annotated[int, typer.Option(help="Images, or texts, per worker.")] = 4,
    rounds: Rounds = 6,
    priority: Priority = False,
    output: Output = "elastic",
    quick: Quick = False,
) -> None:
    if quick:
        nodes, steps, batch_size, rounds = 2, 2, 1, 1
    record = Record(output, locals())
    rows = []
    for kind in compression.split():
        found: dict[str, list[jobs.Reports]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode in MODES:
                command = jobs.node(
                    "training.elastic_node", type=kind, model=model, steps=steps,
                    batch_size=batch_size, elastic=mode == "elastic", seed=0, context=16,
                )  # fmt: skip
                found[mode].append(_run(command, nodes, mode == "elastic", priority))
        record[kind] = found
        for what in ("seconds", "processor"):
            plain, elastic = (
                statistics.median(_steps(reports, what) for reports in found[mode])
                for mode in MODES
            )
            numbers = [f"{1e3 * plain:.1f}", f"{1e3 * elastic:.1f}"]
            label = "step" if what == "seconds" else "processor time of a worker in a step"
            rows.append([f"`{kind}`: {label}", *numbers, f"{100 * (elastic / plain - 1):+.1f}%"])
    heads = ["", "DistributedOptimizer, ms", "elastic, ms", "difference"]
    title = f"{model}, {nodes} workers on one machine, medians of {rounds} jobs each"
    record.table(heads, rows, title)
    record.save()


def _run(command: list[str], workers: int, elastic: bool, priority: bool) -> jobs.Reports:
    if not elastic:
        return jobs.reports(jobs.torch_job(command, workers, priority=priority, timeout=600))
    env = {**jobs.environment(), **jobs.MALLOC}
    with ElasticJob(command, workers, env=env, priority=priority, heartbeat_ms=12000) as job:
        return jobs.reports(job.wait(600, succeed=True))


def _steps(reports: jobs.Reports, what: str) -> float:
    """The median of a job's steps: seconds of the slowest worker, or the workers' mean."""
    by_step = list(zip(*(report[what] for report in reports)))
    of_step = max if what == "seconds" else statistics.mean
    return statistics.median(of_step(each) for each in by_step)
