"""`hipress explain`: times of all choices, the reasons of the current one, and advice."""

import json
from pathlib import Path
from typing import Annotated, Optional

import typer
from typer import Argument, Option

from hipress.cli import fail, options

_Path = Optional[Path]  # noqa: UP045 (Python 3.9)


def command(
    job: Annotated[_Path, Argument(help="the file that a job with HIPRESS_EXPLAIN writes")] = None,
    model: options.Model = "",
    nodes: Annotated[int, Option("--nodes", min=1, help="hosts that train")] = 2,
    topology: options.Topology = options.DEFAULT_TOPOLOGY,
    profile: options.Profile = "sosp21",
    bandwidth: options.Bandwidth = "",
    latency: options.Latency = "",
    threads: options.Threads = None,
    compute_ms: options.ComputeMs = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the cost of each choice, what was chosen and why, and what would pay next."""
    from hipress.autotune import explanation
    from hipress.planning import profiles
    from hipress.simulator import explain, models
    from hipress.simulator.step import Options

    if (job is None) == (not model):
        fail("give either a job's FILE or --model NAME")
    try:
        if job is not None:
            found = explanation.load(job)
        else:
            net = models.load(model)
            if compute_ms is not None:
                net = net.with_compute(compute_ms / 1e3)
            loaded = profiles.load(profile)
            types = loaded.compressed_types()
            changes = options.changes(bandwidth, latency, threads)
            found = explain.explain(net, profile, types, Options(topology, nodes), changes)
    except ValueError as error:
        fail(error)
    typer.echo(json.dumps(found.to_json(), indent=1) if as_json else found)
