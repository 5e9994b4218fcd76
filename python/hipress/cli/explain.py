"""`hipress explain`: times of all choices, the reasons of the current one, and advice."""

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from hipress.cli import fail, options
from hipress.topology import topologies

_Path = Optional[Path]  # noqa: UP045 (Python 3.9)
_Float = Optional[float]  # noqa: UP045


def command(
    job: Annotated[
        _Path, typer.Argument(help="the file that a job with HIPRESS_EXPLAIN writes")
    ] = None,
    model: options.Model = "",
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="hosts that train")] = 2,
    topology: Annotated[
        str, typer.Option("--topology", help=topologies.either(topologies.names()))
    ] = topologies.default(0),
    profile: options.Profile = "sosp21",
    bandwidth: options.Bandwidth = "",
    latency: options.Latency = "",
    threads: options.Threads = None,
    compute_ms: Annotated[
        _Float, typer.Option("--compute-ms", help="forward and backward pass of one device")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say what each choice takes, what was chosen and why, and what would pay next."""
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
