"""Quality of training with type "auto": six tasks, three seeds each.

Each task trains with DDP's float32 on links that are not shaped, because links do not affect the
result. It also trains with ``hipress.torch.compress(model, optimizer=...)`` on links so slow that
compression pays. A seed's weights, data and steps are the same. The benchmark prints the models'
quality on held-out data: their loss on text, and their accuracy on images. ``--methods`` also takes
fp16, DDP's own hook, whose difference shows the size of chance. A run is written at its end.
``--join`` shows runs of earlier files, and skips them. Needs root.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.common import jobs
from benchmarks.common.options import Nodes, Output, Priority, Quick, Seeds
from benchmarks.common.results import Record, verdict
from harness import netns
from harness.netns import ShapedNetwork

METHODS = PLAIN, _, AUTO = "float32", "fp16", "auto"
MEAN, WORST = 0.01, 0.02
"""Allowed losses of quality, relative to float32: of the mean of the seeds, and of each."""


class Size(NamedTuple):
    """Training of a task, and its figure of quality."""

    about: str
    steps: int
    batch_size: int
    """Samples per rank."""
    rate: str
    """Rate of links on which float32's gradients of a step take 0.3 to 1.6 s, with four nodes. On
    faster links this machine bounds all methods, and the choice is chance."""
    figure: str
    """Figure of quality: "loss", in nats, or "accuracy"."""


TASKS = {
    "logistic": Size("logistic regression, text, SGD", 1000, 8, "10mbit", "loss"),
    "lstm": Size("LSTM, text, SGD", 1000, 8, "10mbit", "loss"),
    "gpt": Size("GPT, text, AdamW", 800, 4, "50mbit", "loss"),
    "cnn": Size("CNN, digits, AdamW", 400, 8, "5mbit", "accuracy"),
    "resnet": Size("ResNet-like, digits in noise, SGD", 400, 16, "50mbit", "accuracy"),
    "vgg": Size("VGG-like, digits in noise, SGD", 400, 16, "100mbit", "accuracy"),
}


def main(
    tasks: Annotated[str, typer.Option(help="Separated by blanks.")] = " ".join(TASKS),
    methods: Annotated[str, typer.Option(help="float32, fp16 and auto.")] = f"{PLAIN} {AUTO}",
    rate: Annotated[str, typer.Option(help="Of each link; default: by the task.")] = "",
    nodes: Nodes = 4,
    seeds: Seeds = "0 1 2",
    steps: Annotated[int, typer.Option(help="Default: as many as are usual here.")] = 0,
    timeout: float = 1800,
    priority: Priority = False,
    output: Output = "quality",
    join: Annotated[list[Path], typer.Option(help="Results of earlier runs.")] = [],  # noqa: B006
    quick: Quick = False,
) -> None:
    netns.require()
    if quick:
        tasks, seeds, nodes, steps = "logistic", "0", 2, 25
    record = Record(output, {**locals(), "join": [path.name for path in join]})
    for option, given, known in (("tasks", tasks, TASKS), ("methods", methods, METHODS)):
        if unknown := set(given.split()) - set(known):
            text = f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}"
            raise typer.BadParameter(text, param_hint=f"--{option}")
    runs = record["runs"] = [
        run
        for file in join
        for run in json.loads(file.read_text())["runs"]
        if run["task"] in tasks.split()
    ]
    for task in tasks.split():
        for method in methods.split():
            known = [run["seed"] for run in runs if (run["task"], run["method"]) == (task, method)]
            if missing := [seed for seed in map(int, seeds.split()) if seed not in known]:
                runs += trained(task, method, missing, steps, rate, nodes, timeout, priority)
                record.save()
    show(record, runs)
    record.save()


def trained(
    task: str,
    method: str,
    seeds: list[int],
    steps: int,
    rate: str,
    nodes: int,
    timeout: float,
    priority: bool,
) -> list[dict[str, Any]]:
    """Return rank 0's reports of a task's trainings by one method, with each seed."""
    size = TASKS[task]
    command = jobs.node(
        "training.quality_node",
        task=task,
        method=method,
        seeds=seeds,
        steps=steps or size.steps,
        batch_size=size.batch_size,
    )
    shaped = (rate or size.rate) if method == AUTO else None
    with ShapedNetwork(nodes, rate=shaped, verify=False) as network:
        found = jobs.reports(jobs.torch_job(command, nodes, network, timeout, priority))
    float32 = 4 * 2 * (nodes - 1) / nodes * (steps or size.steps)  # in a ring, for each weight
    for run in found:
        run["rate"] = shaped or ""
        run["times_fewer_bytes"] = float32 * run["parameters"] / run["bytes_sent"]
    return found


def changes(runs: list[dict], own: list[dict]) -> list[float]:
    """Return the relative differences of runs' figures from float32's of the same task and seed.

    Runs without such a peer are left out.
    """
    plain = {(run["task"], run["seed"]): run for run in runs if run["method"] == PLAIN}
    found = []
    for run in own:
        peer, figure = plain.get((run["task"], run["seed"])), TASKS[run["task"]].figure
        if peer is not None:
            found.append(run[figure] / peer[figure] - 1)
    return found


def worst(task: str, found: Iterable[float]) -> float:
    """Return the largest change to the worse."""
    return min(found) if TASKS[task].figure == "accuracy" else max(found)


def keeps(task: str, found: Collection[float]) -> bool:
    """Return whether these changes, by seed, are allowed."""
    sign = -1 if TASKS[task].figure == "accuracy" else 1
    return sign * statistics.fmean(found) <= MEAN and sign * worst(task, found) <= WORST


def show(record: Record, runs: list[dict]) -> None:
    """Add a table of the tasks with each method's mean over the seeds, and one of auto's runs."""
    of: dict[tuple[str, str], list[dict]] = {}
    order = {name: at for at, name in enumerate([*TASKS, *METHODS])}
    runs.sort(key=lambda run: (order[run["task"]], order[run["method"]], run["seed"]))
    for run in runs:
        of.setdefault((run["task"], run["method"]), []).append(run)
    rows, missed = [], []
    for (task, method), own in of.items():
        size, found = TASKS[task], changes(runs, own)
        row = [f"{size.about}: {method}", size.figure, spread([run[size.figure] for run in own])]
        if found and method != PLAIN:
            kept = keeps(task, found)
            mean = statistics.fmean(found)
            row += [f"{mean:+.2%} ({worst(task, found):+.2%})", "yes" if kept else "no"]
            missed += [size.about] if method == AUTO and not kept else []
        else:
            row += ["", ""]
        share = [100 * run["compressed_share"] for run in own if "compressed_share" in run]
        row.append(f"{statistics.fmean(share):.0f}%" if share else "")
        row.append(f"{statistics.fmean(run['times_fewer_bytes'] for run in own):.1f}")
        rows.append(row)
    heads = [
        "",
        "on held-out data",
        "mean (lowest to highest of the seeds)",
        "against float32: mean (worst seed)",
        "within 1% and 2%",
        "of gradients' bytes compressed",
        "times fewer bytes sent",
    ]
    record.table(heads, rows, "quality of training with type auto")
    rows = []
    for run in (run for run in runs if run["method"] == AUTO):
        rows.append(
            [
                f"{TASKS[run['task']].about}, {run['rate']}, seed {run['seed']}",
                *([f"{change:+.2%}" for change in changes(runs, [run])] or [""]),
                f"{run['loss']:.4f}",
                f"{run['accuracy']:.2%}",
                method_names(run["ways"]),
                said(run, "(at most"),
                said(run, "times as long as they did"),
            ]
        )
    heads = [
        "",
        "against float32",
        "loss",
        "accuracy",
        "steps by each way",
        "guard stepped in",
        "measured again",
    ]
    record.table(heads, rows, "runs of auto", "runs")
    claim = f"within {MEAN:.0%} of float32 in the mean of the seeds, {WORST:.0%} with each"
    verdict(not missed, claim + (f": missed by {', '.join(missed)}" if missed else ""))


def spread(figures: list[float]) -> str:
    """Return the mean and the range of figures, as text."""
    return f"{statistics.fmean(figures):.4f} ({min(figures):.4f} to {max(figures):.4f})"


def method_names(steps: dict[str, int]) -> str:
    """Return the methods of a run in order of their first step, with their numbers of steps."""
    return ", then ".join(f"{method_name} {count}" for method_name, count in steps.items())


def said(run: dict[str, Any], words: str) -> int:
    """Return the number of auto's log messages of this kind."""
    return sum(words in sentence for _, sentence in run["events"])
