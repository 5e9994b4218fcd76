"""`hipress simulate`: predicted step time and scaling of a cluster."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer
from typer import Option

from hipress.cli import fail, options
from hipress.topology import topologies

_Path = Optional[Path]  # noqa: UP045 (Python 3.9)
_Int = Optional[int]  # noqa: UP045
_SERVED = topologies.either(topologies.names(servers=True))


def command(
    model: options.Model,
    nodes: Annotated[int, Option("--nodes", min=1, help="hosts that train")],
    topology: options.Topology = options.DEFAULT_TOPOLOGY,
    servers: Annotated[
        int,
        Option("--servers", min=0, help=f"{_SERVED}: hosts that only serve; 0: beside the workers"),
    ] = 0,
    devices: Annotated[int, Option("--devices", min=1, help="devices per host")] = 1,
    profile: options.Profile = "sosp21",
    type: options.Type = "",
    plan: Annotated[
        str, Option("--plan", help="a plan's file, or `auto` to make one; else none")
    ] = "",
    bandwidth: options.Bandwidth = "",
    latency: options.Latency = "",
    threads: options.Threads = None,
    compute_ms: options.ComputeMs = None,
    overlap: Annotated[
        bool, Option("--overlap/--no-overlap", help="synchronize during the backward pass")
    ] = True,
    priority: Annotated[bool, Option("--priority/--no-priority", help="first layers first")] = True,
    overlap_forward: Annotated[
        bool, Option("--overlap-forward", help="start layers as their gradients come")
    ] = False,
    sync_every: Annotated[
        _Int, Option("--sync-every", min=1, help="weights every so many steps, as DiLoCo does")
    ] = None,
    fragments: Annotated[
        int, Option("--fragments", min=1, help="parts of the model that take turns at it")
    ] = 1,
    sync_delay: Annotated[
        int, Option("--sync-delay", min=0, help="steps that such a part may travel")
    ] = 0,
    timeline: Annotated[_Path, Option("--timeline", help="write a Perfetto trace")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict step time and scaling on a cluster of any size."""
    from hipress.simulator import models, setting, trace
    from hipress.simulator.rounds import Rounds, mean_step
    from hipress.simulator.step import Options, simulate

    began = time.perf_counter()
    if servers and topology.lower() not in topologies.names(servers=True):
        fail(f"--servers goes with --topology {_SERVED}, not {topology}")
    if sync_every is None and (fragments, sync_delay) != (1, 0):
        fail("--fragments and --sync-delay go with --sync-every")
    try:
        net = models.load(model)
        if compute_ms is not None:
            net = net.with_compute(compute_ms / 1e3)
        changes = {"devices": devices, **options.changes(bandwidth, latency, threads)}
        scene = setting.read(profile, type, plan, net, topology, nodes, changes)
        cluster = scene.cluster
        how = Options(
            topology,
            nodes,
            servers,
            overlap,
            priority,
            overlap_forward,
            record=timeline is not None,
        )
        step = simulate(net, scene.costs, cluster, how, scene.plan)
        plain = replace(scene.costs, compressed=scene.costs.plain)
        quiet = replace(how, record=False)
        raw = simulate(net, plain, cluster, quiet)
        mean = None
        if sync_every is not None:
            rounds = Rounds(sync_every, fragments, sync_delay)
            mean = mean_step(net, scene.costs, cluster, quiet, rounds, scene.plan)
    except ValueError as error:
        fail(error)
    values = {
        "model": net.name,
        "nodes": nodes,
        "devices": devices,
        "topology": topology,
        "compression": scene.costs.compressed.name,
        "gradients": len(net.layers),
        "gradient_bytes": 4 * net.elements,
        "compute_seconds": step.compute,
        "step_seconds": step.seconds,
        "exposed_seconds": step.exposed,
        "scaling_efficiency": step.efficiency,
        "uncompressed_step_seconds": raw.seconds,
        "bytes_sent_per_host": step.bytes_per_host,
        "messages_per_host": step.messages_per_host,
        "link_busy": step.send_use,
        "codec_threads_busy": step.compute_use,
        "bandwidth_bytes_per_second": cluster.bandwidth,
        "latency_seconds": cluster.latency,
        "codec_threads": cluster.threads,
        "shared_hosts": cluster.shared_hosts,
        "by_symmetry": step.symmetric,
        "simulation_seconds": time.perf_counter() - began,
    }
    if mean is not None:
        values["rounds"] = {
            "sync_every": sync_every,
            "fragments": len(mean.fragment_seconds),
            "sync_delay": sync_delay,
            "inner_step_seconds": mean.seconds,
            "computing": mean.computing,
            "fragment_seconds": mean.fragment_seconds,
            "bytes_sent_per_host_and_step": mean.bytes_per_host,
        }
    if timeline is not None:
        try:
            trace.save(timeline, step.result, step.lowered, net, {"predicted": values})
        except ValueError as error:
            fail(error)
    if as_json:
        typer.echo(json.dumps(values, indent=2))
    else:
        _describe(values, net, timeline)


def _describe(values: dict, net, timeline: Optional[Path]) -> None:
    lines = [
        f"{net.name}: {values['gradients']} gradients, {values['gradient_bytes'] / 2**20:.0f} MiB "
        f"({net.source})",
        f"{values['nodes']} hosts of {values['devices']} devices, topology {values['topology']}, "
        f"compression {values['compression']}, "
        f"{values['bandwidth_bytes_per_second'] * 8 / 1e9:.4g} Gbit/s, "
        f"{values['latency_seconds'] * 1e6:.4g} us",
        f"step                {1e3 * values['step_seconds']:10.2f} ms"
        f"   (uncompressed {1e3 * values['uncompressed_step_seconds']:.2f} ms)",
        f"  computation       {1e3 * values['compute_seconds']:10.2f} ms   (assumed)",
        f"  exposed           {1e3 * values['exposed_seconds']:10.2f} ms",
        f"scaling efficiency  {values['scaling_efficiency']:10.1%}",
        f"a host sends        {values['bytes_sent_per_host'] / 2**20:10.2f} MiB"
        f"  in {values['messages_per_host']:.0f} messages; its link is busy "
        f"{values['link_busy']:.0%}, its codec threads "
        f"{values['codec_threads_busy']:.0%} of a step",
    ]
    if values["shared_hosts"]:
        lines.append(options.sharing(values["codec_threads"], "these"))
    if values["by_symmetry"]:
        lines.append("one host was simulated for all (symmetry)")
    if "rounds" in values:
        found = values["rounds"]
        lines += [
            f"weights every {found['sync_every']} steps, fragments {found['fragments']}, delay "
            f"{found['sync_delay']}",
            f"  inner step        {1e3 * found['inner_step_seconds']:10.2f} ms in the mean"
            f"   ({found['computing']:.1%} computing)",
            f"  a synchronization {1e3 * max(found['fragment_seconds']):10.2f} ms   (the longest)",
            f"  a host sends      {found['bytes_sent_per_host_and_step'] / 2**20:10.2f} MiB a step "
            "in the mean",
        ]
    if timeline is not None:
        lines.append(f"timeline: {timeline} (open it with ui.perfetto.dev or `hipress report`)")
    typer.echo("\n".join(lines))
