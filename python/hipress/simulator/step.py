"""One training step: times of gradients, their synchronization, and its cost.

Time 0 is the start of the backward pass, which computes the gradients from the last layer to the
first. The devices of a host then add theirs up, the hosts synchronize, and the result is copied to
the devices. The next forward pass starts when the last gradient is ready. With ``overlap_forward``,
each layer starts when its own gradient is ready, as in frameworks that give the first layers
priority.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hipress.planning.cluster import Cluster, Costs
from hipress.planning.plan import Decision
from hipress.simulator import engine, lower, symmetric
from hipress.simulator.engine import Result
from hipress.simulator.lower import Key, Lowered
from hipress.simulator.models import Layer, Model
from hipress.topology import topologies
from hipress.topology.graph import PARTITION_ELEMENTS
from hipress.topology.topology import Symmetry, cuts_for

GRAPH_TASKS = 400_000
"""Approximate number of tasks from which symmetry replaces the graph of all hosts."""

FUSE_ELEMENTS = 1_000_000
"""Elements up to which neighboring gradients are fused with symmetry."""


@dataclass(frozen=True)
class Options:
    """Options of a step."""

    topology: str
    nodes: int
    servers: int = 0
    """Servers of a topology that needs some. 0 places one with each worker; otherwise so many are
    on separate hosts."""
    overlap: bool = True
    """Whether to synchronize during the backward pass."""
    priority: bool = True
    """Whether first layers go first. Otherwise the order is that of computation."""
    overlap_forward: bool = False
    symmetric: bool | None = None
    """Whether one host represents all; None: only if the whole graph would be too large."""
    record: bool = False


@dataclass(frozen=True)
class Step:
    """Outcome of a step."""

    seconds: float
    compute: float
    """Seconds of forward and backward pass alone."""
    synchronised: float
    """Seconds, from the start of the backward pass, until the last gradient is synchronized."""
    exposed: float
    """Seconds that communication adds to computation."""
    efficiency: float
    """Speed per device relative to one that trains alone."""
    send_use: float
    """The busiest host's share of the step in which its link sends."""
    compute_use: float
    """The busiest host's share of the step in which its codec threads compute."""
    bytes_per_host: float
    messages_per_host: float
    hosts: int
    symmetric: bool
    result: Result
    lowered: Lowered


def simulate(
    model: Model,
    costs: Costs,
    cluster: Cluster,
    options: Options,
    plan: Mapping[str, Decision] | None = None,
) -> Step:
    """Run one step.

    A gradient without a decision in ``plan`` is compressed and partitioned as in jobs without a
    plan.
    """
    if options.nodes < 1:
        raise ValueError(f"a cluster has at least one node, got {options.nodes}")
    use_symmetry = options.symmetric
    if options.topology in symmetric.BASELINES:
        use_symmetry = True
    else:
        options = replace(options, topology=topologies.named(options.topology))
    if use_symmetry is None:
        use_symmetry = _graph_tasks(model, options, plan) > GRAPH_TASKS
    if use_symmetry:
        layers, ready = _fuse(model, cluster, options, plan)
        lowered = _symmetric(layers, ready, costs, cluster, options, plan)
        cluster, dilation = cluster.alone(options.nodes)
    else:
        layers, ready = list(model.layers), _ready(model, cluster, options)
        lowered = _graphs(layers, ready, costs, options, plan)
        dilation = 1.0
    result = engine.run(lowered.tasks, cluster, lowered.hosts, options.record, dilation)
    done = [max(result.end[t] for t in tasks) for tasks in lowered.outputs]
    return _step(model, layers, done, result, lowered, cluster, options, use_symmetry)


def _ready(model: Model, cluster: Cluster, options: Options) -> list[float]:
    """Return the seconds at which each gradient is ready, summed over its host's devices."""
    total = sum(model.backward)
    if not options.overlap:
        return [total + cluster.device_seconds(layer.size) for layer in model.layers]
    ready, now = [], 0.0
    for layer, seconds in zip(reversed(model.layers), reversed(model.backward)):
        now += seconds
        ready.append(now + cluster.device_seconds(layer.size))
    return ready[::-1]


def _priorities(ready: list[float], options: Options) -> list[int]:
    order = range(len(ready))
    if not options.priority:
        order = sorted(order, key=lambda i: (ready[i], -i))
    priorities = [0] * len(ready)
    for position, i in enumerate(order):
        priorities[i] = position
    return priorities


def _decision(plan: Mapping[str, Decision] | None, name: str) -> Decision | None:
    return None if plan is None else plan.get(name)


def _graph_tasks(model: Model, options: Options, plan: Mapping[str, Decision] | None) -> float:
    total = 0.0
    for layer in model.layers:
        total += 7.0 * _partitions(layer, options, plan) * options.nodes
    return total


def _partitions(layer: Layer, options: Options, plan: Mapping[str, Decision] | None) -> int:
    decision = _decision(plan, layer.name)
    if decision:
        return decision.partitions
    return len(cuts_for(layer.size, options.nodes))


def _graphs(
    layers: list[Layer],
    ready: list[float],
    costs: Costs,
    options: Options,
    plan: Mapping[str, Decision] | None,
) -> Lowered:
    keys = []
    servers = options.servers or options.nodes
    for i, (layer, priority) in enumerate(zip(layers, _priorities(ready, options))):
        decision = _decision(plan, layer.name)
        graph = topologies.build(
            options.topology,
            layer.size,
            options.nodes,
            servers,
            home=i,
            partitions=decision.partitions if decision else None,
        )
        codec = costs.plain if decision and not decision.compress else costs.compressed
        keys.append(Key(layer.name, graph, codec, costs.plain, ready[i], priority))
    return lower.lower(keys, lower.apart(options.nodes) if options.servers else lower.beside)


_SYMMETRIC = {Symmetry.RING: symmetric.ring, Symmetry.EXCHANGE: symmetric.exchange}


def _one_for_all(options: Options) -> Callable[..., Lowered]:
    """Return the function that makes one host's tasks for all."""
    if options.topology in symmetric.BASELINES:
        return symmetric.BASELINES[options.topology]
    symmetry = topologies.TOPOLOGIES[options.topology].symmetry
    if symmetry is None or options.servers:
        what = f"{options.topology} with servers apart" if options.servers else options.topology
        others = topologies.either(
            f"{name} (a server beside each worker)" if topology.needs_servers else name
            for name, topology in topologies.TOPOLOGIES.items()
            if topology.symmetry is not None
        )
        raise ValueError(
            f"{options.nodes} nodes are too many for the whole graph of topology {what}; "
            f"with so many, {others} can be simulated"
        )
    return _SYMMETRIC[symmetry]


def _symmetric(
    layers: list[Layer],
    ready: list[float],
    costs: Costs,
    cluster: Cluster,
    options: Options,
    plan: Mapping[str, Decision] | None,
) -> Lowered:
    lowering = _one_for_all(options)
    keys = []
    for layer, at, priority in zip(layers, ready, _priorities(ready, options)):
        decision = _decision(plan, layer.name)
        wanted = decision.partitions if decision else layer.size / PARTITION_ELEMENTS
        codec = costs.plain if decision and not decision.compress else costs.compressed
        whole = options.topology in symmetric.BASELINES
        cuts = max(1, round(wanted / (1 if whole else options.nodes)))
        keys.append(symmetric.SymmetricKey(layer.name, layer.size, codec, at, cuts, priority))
    return lowering(keys, options.nodes, cluster)


def _fuse(
    model: Model, cluster: Cluster, options: Options, plan: Mapping[str, Decision] | None
) -> tuple[list[Layer], list[float]]:
    """Return fused neighbors with the same decision, in forward order, and when they are ready.

    A gradient with fewer partitions than nodes keeps only as many hosts busy, and its neighbors
    keep other hosts busy. Gradients that together have a partition per host become one gradient
    with one partition per host. Each of these represents one real partition, with its message and
    its start of the codec.
    """
    most = math.inf if options.topology in symmetric.BASELINES else options.nodes
    ready = _ready(model, cluster, options)
    layers: list[Layer] = []
    times: list[float] = []
    kinds: list[bool | None] = []
    partitions = 0  # of the last gradient
    for layer, at in zip(model.layers, ready):
        decision = _decision(plan, layer.name)
        kind = decision.compress if decision else None
        small = layer.size < FUSE_ELEMENTS
        more = _partitions(layer, options, plan)
        fits = partitions + more <= most and layers and layers[-1].size < FUSE_ELEMENTS
        if small and fits and kinds[-1] == kind:
            partitions += more
            layers[-1] = Layer(layers[-1].name, layers[-1].size + layer.size)
            times[-1] = max(times[-1], at)
        else:
            partitions = more
            layers.append(layer)
            times.append(at)
            kinds.append(kind)
    return layers, times


def _step(
    model: Model,
    layers: list[Layer],
    done: list[float],
    result: Result,
    lowered: Lowered,
    cluster: Cluster,
    options: Options,
    use_symmetry: bool,
) -> Step:
    backward, forward = sum(model.backward), sum(model.forward)
    there = [at + cluster.device_seconds(layer.size) for at, layer in zip(done, layers)]
    by_name = dict(zip((layer.name for layer in layers), there))
    if options.overlap_forward:
        now = backward
        for layer, seconds in zip(model.layers, model.forward):
            now = max(now, by_name.get(layer.name, 0.0)) + seconds
        end = now
    else:
        end = max(backward, *there) + forward
    alone = backward + forward
    pools = [sum(result.compute_busy)] if cluster.shared_hosts else result.compute_busy
    hosts = options.nodes + (options.servers if not use_symmetry else 0)
    # With symmetry there is one host. Otherwise all hosts' traffic is spread over them.
    share = 1 if use_symmetry else hosts
    return Step(
        seconds=end,
        compute=alone,
        synchronised=max(there),
        exposed=end - alone,
        efficiency=alone / end if end > 0 else 1.0,
        send_use=max(result.send_busy) / end if end > 0 else 0.0,
        compute_use=max(pools) / cluster.threads / end if end > 0 else 0.0,
        bytes_per_host=result.bytes / share,
        messages_per_host=result.messages / share,
        hosts=hosts,
        symmetric=use_symmetry,
        result=result,
        lowered=lowered,
    )
