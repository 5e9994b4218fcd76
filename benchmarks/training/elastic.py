"""Cost of elastic training without failures, compared with ordinary training.

PyTorch: the workers of an elastic job train two copies of a model in turn, step by step, one of
them with DistributedOptimizer on the same process group. Both therefore run on the same machine
state, and neighboring steps are compared. MXNet: the same script as the workers of a job without
servers and as those of an elastic job, in turn. A step's time is its slowest worker's.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from typing import Annotated

import typer

from benchmarks.common import jobs
from benchmarks.common.intervals import median_interval
from benchmarks.common.options import Nodes, Output, Priority, Quick, Rounds
from benchmarks.common.results import Record
from harness.elastic import ElasticJob

MODES = ("not elastic", "elastic")


def main(
    compression: Annotated[str, typer.Option(help="Types.")] = "onebit",
    model: Annotated[str, typer.Option(help="vgg, gpt, or digits, which is MXNet's.")] = "vgg",
    nodes: Nodes = 4,
    steps: int = 60,
    batch_size: Annotated[str, typer.Option(help="Images, or texts, per worker.")] = "4 32",
    rounds: Rounds = 3,
    priority: Priority = False,
    output: Output = "elastic",
    quick: Quick = False,
) -> None:
    if quick:
        nodes, steps, batch_size, rounds = 2, 2, "1", 1
    record = Record(output, locals())
    run = _run_mxnet if model == "digits" else _run_torch
    rows = []
    unit = "texts" if model == "gpt" else "images"
    for kind, batch in itertools.product(compression.split(), map(int, batch_size.split())):
        options = {"type": kind, "steps": steps, "batch_size": batch}
        found = [run(model, options, nodes, priority) for _ in range(rounds)]
        record[f"{kind}, {batch}"] = found
        for what in ("seconds", "processor"):
            label = "step" if what == "seconds" else "processor time of a worker in a step"
            cells = _cells(found, what, paired=model != "digits")
            rows.append([f"`{kind}`, {batch} {unit}: {label}", *cells])
    plain = "not elastic" if model == "digits" else "DistributedOptimizer"
    heads = ["", f"{plain}, ms", "elastic, ms", "difference"]
    title = f"{model}, {nodes} workers on one machine, medians of {rounds} jobs of {steps} steps"
    record.table(heads, rows, title)
    record.save()


def _cells(found: list[dict[str, jobs.Reports]], what: str, paired: bool) -> list[str]:
    """Return the two medians and the difference.

    Args:
        found: Reports of each job, by mode.
        what: Name of the measured value.
        paired: Whether the modes' steps were made in turn.
    """
    times = {mode: [_steps(job[mode], what) for job in found] for mode in MODES}
    plain, elastic = (statistics.median(sum(times[mode], [])) for mode in MODES)
    numbers = [f"{1e3 * plain:.1f}", f"{1e3 * elastic:.1f}"]
    if not paired:
        return [*numbers, f"{100 * (elastic / plain - 1):+.1f}%"]
    pairs = zip(*(sum(times[mode], []) for mode in MODES))
    differences = [second - first for first, second in pairs]
    low, middle, high = (100 * each / plain for each in median_interval(differences))
    return [*numbers, f"{middle:+.1f}% ({low:+.1f}% to {high:+.1f}%)"]


def _run_torch(
    model: str, options: dict[str, object], workers: int, priority: bool
) -> dict[str, jobs.Reports]:
    more = {"model": model, "seed": 0, "context": 16}
    command = jobs.node("training.elastic_node", **options, **more)
    found = _run_elastic(command, workers, priority, jobs.MALLOC)
    return {mode: [each for each in found if each["mode"] == mode] for mode in MODES}


def _run_mxnet(
    _model: str, options: dict[str, object], workers: int, priority: bool
) -> dict[str, jobs.Reports]:
    own = jobs.node("training.elastic_mxnet_node", **options)
    command = [sys.executable, "-m", "mxnet_hipress", *own[1:]]
    env = {**jobs.MALLOC, "OMP_NUM_THREADS": "1"}
    plain = jobs.kvstore_job(command, workers, 0, env=env, timeout=600, priority=priority)
    return dict(zip(MODES, (plain, _run_elastic(command, workers, priority, env))))


def _run_elastic(
    command: list[str], workers: int, priority: bool, env: dict[str, str]
) -> jobs.Reports:
    env = {**jobs.environment(), **env}
    with ElasticJob(command, workers, env=env, priority=priority, heartbeat_ms=12000) as job:
        return jobs.reports(job.wait(600, succeed=True))


def _steps(reports: jobs.Reports, what: str) -> list[float]:
    """Return a job's step times: seconds of the slowest worker, or the workers' mean."""
    of_step = max if what == "seconds" else statistics.mean
    return [of_step(each) for each in zip(*(report[what] for report in reports))]
