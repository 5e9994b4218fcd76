"""What it costs to be elastic while nothing fails: steps of elastic training beside others.

The same training, with DistributedOptimizer as the ranks of a process group, or under MXNet with a
Trainer as the workers of a job without servers, and as the workers of an elastic job, in turn, each
as a job of its own. A step's time is its slowest worker's.
"""

from __future__ import annotations

import statistics
import sys
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Nodes, Output, Priority, Quick, Rounds
from benchmarks.common.results import Record
from harness.elastic import ElasticJob

MODES = ("not elastic", "elastic")


def main(
    compression: Annotated[str, typer.Option(help="Types.")] = "onebit",
    model: Annotated[str, typer.Option(help="vgg, gpt, or digits, which is MXNet's.")] = "vgg",
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
    run = _run_mxnet if model == "digits" else _run_torch
    record = Record(output, locals())
    rows = []
    for kind in compression.split():
        found: dict[str, list[jobs.Reports]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode in MODES:
                options = {"type": kind, "steps": steps, "batch_size": batch_size}
                found[mode].append(run(model, options, nodes, mode == "elastic", priority))
        record[kind] = found
        for what in ("seconds", "processor"):
            plain, elastic = (
                statistics.median(_steps(reports, what) for reports in found[mode])
                for mode in MODES
            )
            numbers = [f"{1e3 * plain:.1f}", f"{1e3 * elastic:.1f}"]
            label = "step" if what == "seconds" else "processor time of a worker in a step"
            rows.append([f"`{kind}`: {label}", *numbers, f"{100 * (elastic / plain - 1):+.1f}%"])
    plain = "not elastic" if model == "digits" else "DistributedOptimizer"
    heads = ["", f"{plain}, ms", "elastic, ms", "difference"]
    title = f"{model}, {nodes} workers on one machine, medians of {rounds} jobs each"
    record.table(heads, rows, title)
    record.save()


def _run_torch(
    model: str, options: dict[str, object], workers: int, elastic: bool, priority: bool
) -> jobs.Reports:
    more = {"model": model, "elastic": elastic, "seed": 0, "context": 16}
    command = jobs.node("training.elastic_node", **options, **more)
    if not elastic:
        return jobs.reports(jobs.torch_job(command, workers, priority=priority, timeout=600))
    return _run_elastic(command, workers, priority, jobs.MALLOC)


def _run_mxnet(
    _model: str, options: dict[str, object], workers: int, elastic: bool, priority: bool
) -> jobs.Reports:
    own = jobs.node("training.elastic_mxnet_node", **options)
    command = [sys.executable, "-m", "mxnet_hipress", *own[1:]]
    env = {**jobs.MALLOC, "OMP_NUM_THREADS": "1"}
    if not elastic:
        return jobs.kvstore_job(command, workers, 0, env=env, timeout=600, priority=priority)
    return _run_elastic(command, workers, priority, env)


def _run_elastic(
    command: list[str], workers: int, priority: bool, env: dict[str, str]
) -> jobs.Reports:
    env = {**jobs.environment(), **env}
    with ElasticJob(command, workers, env=env, priority=priority, heartbeat_ms=12000) as job:
        return jobs.reports(job.wait(600, succeed=True))


def _steps(reports: jobs.Reports, what: str) -> float:
    """The median of a job's steps: seconds of the slowest worker, or the workers' mean."""
    by_step = list(zip(*(report[what] for report in reports)))
    of_step = max if what == "seconds" else statistics.mean
    return statistics.median(of_step(each) for each in by_step)
