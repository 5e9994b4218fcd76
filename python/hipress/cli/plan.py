"""`hipress plan`: SeCoPaPlan.txt from a list of gradients and a profile."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from typer import Option

from hipress.cli import fail, options
from hipress.planning import planner
from hipress.topology import topologies

_OUTPUT = Path("SeCoPaPlan.txt")
_PLANNABLE = topologies.either(topology.name.upper() for topology in planner.plannable())


def command(
    topology: Annotated[str, Option("--topology", help=_PLANNABLE)],
    nnodes: Annotated[int, Option("--nnodes", help="number of nodes")],
    input: Annotated[
        Optional[Path],  # noqa: UP045 (Python 3.9)
        Option("--input", help="the gradients, lines of name,size (float32 elements)"),
    ] = None,
    model: options.Model = "",
    profile: options.Profile = "sosp21",
    type: options.Type = "",
    ratio: Annotated[
        Optional[float],  # noqa: UP045 (Python 3.9)
        Option("--ratio", help="compressed / raw size, instead of the profile's"),
    ] = None,
    bandwidth: options.Bandwidth = "",
    latency: options.Latency = "",
    threads: options.Threads = None,
    output: Annotated[Path, Option("--output", help="the plan's file")] = _OUTPUT,
) -> None:
    """Decide per gradient whether to compress it and how to cut it: SeCoPaPlan.txt."""
    from hipress.planning import plan as plans
    from hipress.planning import profiles
    from hipress.simulator import models

    if (input is None) == (not model):
        fail("give either --input FILE or --model NAME")
    try:
        if input is not None:
            gradients = plans.load_gradients(input)
        else:
            layers = models.load(model).layers
            gradients = [plans.GradientSize(layer.name, layer.size) for layer in layers]
        loaded = profiles.load(profile)
        changes = options.changes(bandwidth, latency, threads)
        plan = planner.make(gradients, topology, nnodes, loaded, type or None, ratio, changes)
        plans.save(output, [(c.gradient, c.decision) for c in plan.choices])
    except (ValueError, OSError) as error:
        fail(error)
    for name in loaded.poor:
        typer.echo(f"note: the profile's curve for {name} fits its measurements badly")
    if loaded.shared_host and not threads:
        shared = options.sharing(loaded.threads, "the plan's")
        typer.echo(f"note: {shared}")
    _describe(plan, output)


def _describe(plan, output: Path) -> None:
    total = sum(choice.gradient.size for choice in plan.choices)
    packed = sum(c.gradient.size for c in plan.choices if c.decision.compress)
    typer.echo(
        f"{output}: {plan.compressed} of {len(plan.choices)} gradients compressed, "
        f"{packed / total:.1%} of all elements"
    )
    if not plan.compressed:
        typer.echo("compression is predicted to gain nothing here: no gradient is compressed")
    how = "one gradient after the other" if plan.summed else "all gradients together"
    typer.echo(
        f"predicted synchronization, {how}: {1e3 * plan.raw_seconds:.2f} ms uncompressed, "
        f"{1e3 * plan.planned_seconds:.2f} ms as planned"
    )
