"""One training step: times of gradients, their synchronization, and its cost.

Time 0 is the start of the backward pass, which computes the gradients from the last layer to the
first. The devices of a host then add theirs up, the hosts synchronize, and the result is copied to
the devices. The next forward pass starts when the last gradient is ready. With ``overlap_forward``,
each layer starts when its own gradient is ready, as in frameworks that give the first layers
priority.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hipress.planning.cluster import Cluster, Costs
from hipress.planning.plan import Decision
from hipress.simulator.event_simulation import Run
from hipress.simulator.lower import (
    BASELINES,
    FORMS,
    Form,
    Lowered,
    SimulatedKey,
    lower,
    one_for_all,
)
from hipress.simulator.models import Layer, Model
from hipress.topology import topologies
from hipress.topology.graph import PARTITION_ELEMENTS
from hipress.topology.topology import cuts_for

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
class SimulatedStep:
    """Outcome of a step."""

    seconds: float
    compute: float
    """Seconds of forward and backward pass alone."""
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
    result: Run
    lowered: Lowered


def simulate(
    model: Model,
    costs: Costs,
    cluster: Cluster,
    options: Options,
    plan: Mapping[str, Decision] | None = None,
) -> SimulatedStep:
    """Run one step.

    A gradient without a decision in ``plan`` is compressed and partitioned as in jobs without a
    plan.
    """
    if options.nodes < 1:
        raise ValueError(f"a cluster has at least one node, got {options.nodes}")
    form = BASELINES.get(options.topology)
    if form is None:
        options = replace(options, topology=topologies.named(options.topology))
    job = _Job(model, costs, cluster, options, plan or {})
    symmetric = options.symmetric
    if symmetric is None:
        symmetric = 7.0 * sum(map(job.partitions, model.layers)) * options.nodes > GRAPH_TASKS
    if symmetric or form:
        return job.one_for_all(form or _form(options))
    return job.graphs()


def _form(options: Options) -> Form:
    """Return the pattern of the topology, in which one host's tasks represent every host's."""
    symmetry = topologies.TOPOLOGIES[options.topology].symmetry
    if symmetry is None or options.servers:
        what = f"{options.topology} with separate servers" if options.servers else options.topology
        others = topologies.either(
            f"{name} (a server on the host of each worker)" if topology.needs_servers else name
            for name, topology in topologies.TOPOLOGIES.items()
            if topology.symmetry is not None
        )
        raise ValueError(
            f"{options.nodes} nodes are too many for the whole graph of topology {what}; "
            f"with so many, {others} can be simulated"
        )
    return FORMS[symmetry]


@dataclass(frozen=True)
class _Job:
    """Arguments of :func:`simulate`."""

    model: Model
    costs: Costs
    cluster: Cluster
    options: Options
    plan: Mapping[str, Decision]

    def partitions(self, layer: Layer) -> int:
        decision = self.plan.get(layer.name)
        return decision.partitions if decision else len(cuts_for(layer.size, self.options.nodes))

    def graphs(self) -> SimulatedStep:
        """Run the graphs of all hosts."""
        options, layers, pairs = self.options, self.model.layers, []
        ready = self._ready()
        for i, (layer, key) in enumerate(zip(layers, self._keys(layers, ready))):
            decision = self.plan.get(layer.name)
            graph = topologies.build(
                options.topology,
                layer.size,
                options.nodes,
                options.servers or options.nodes,
                home=i,
                partitions=decision.partitions if decision else None,
            )
            pairs.append((key, graph))
        lowered = lower(pairs, self.costs.plain, options.nodes if options.servers else 0)
        run = Run(lowered.tasks, self.cluster, lowered.hosts, options.record)
        return self._step(layers, run, lowered, self.cluster, symmetric=False)

    def one_for_all(self, form: Form) -> SimulatedStep:
        """Run the tasks of one host, which represents all."""
        nodes = self.options.nodes
        layers, ready = self._fused(math.inf if form.whole else nodes)
        keys = []
        for layer, key in zip(layers, self._keys(layers, ready)):
            decision = self.plan.get(layer.name)
            wanted = decision.partitions if decision else layer.size / PARTITION_ELEMENTS
            keys.append((key, layer.size, max(1, round(wanted / (1 if form.whole else nodes)))))
        lowered = one_for_all(form, keys, nodes, self.cluster)
        cluster, dilation = self.cluster.alone(nodes)
        run = Run(lowered.tasks, cluster, 1, self.options.record, dilation)
        return self._step(layers, run, lowered, cluster, symmetric=True)

    def _ready(self) -> list[float]:
        """Return the seconds at which each gradient is ready, summed over its host's devices."""
        model, seconds = self.model, self.cluster.device_seconds
        if not self.options.overlap:
            return [sum(model.backward) + seconds(layer.size) for layer in model.layers]
        ready, now = [], 0.0
        for layer, backward in zip(reversed(model.layers), reversed(model.backward)):
            now += backward
            ready.append(now + seconds(layer.size))
        return ready[::-1]

    def _keys(self, layers: Sequence[Layer], ready: Sequence[float]) -> list[SimulatedKey]:
        """Return a key of each gradient, with its codec and priority."""
        order: Sequence[int] = range(len(ready))
        if not self.options.priority:
            order = sorted(order, key=lambda i: (ready[i], -i))
        priorities = {i: priority for priority, i in enumerate(order)}
        keys = []
        for i, layer in enumerate(layers):
            decision = self.plan.get(layer.name)
            plain = decision is not None and not decision.compress
            codec = self.costs.plain if plain else self.costs.compressed
            keys.append(SimulatedKey(layer.name, codec, ready[i], priorities[i]))
        return keys

    def _fused(self, most: float) -> tuple[list[Layer], list[float]]:
        """Return fused neighbors with the same decision, in forward order, and when they are ready.

        A gradient with fewer partitions than nodes keeps only as many hosts busy, and its neighbors
        keep other hosts busy. Gradients that together have a partition per host become one gradient
        with one partition per host. Each of these represents one real partition, with its message
        and its start of the codec.
        """
        layers: list[Layer] = []
        ready: list[float] = []
        kinds: list[bool | None] = []
        partitions = 0  # of the last gradient
        for layer, seconds in zip(self.model.layers, self._ready()):
            decision = self.plan.get(layer.name)
            kind = decision.compress if decision else None
            more = self.partitions(layer)
            fits = partitions + more <= most and layers and layers[-1].size < FUSE_ELEMENTS
            if layer.size < FUSE_ELEMENTS and fits and kinds[-1] == kind:
                partitions += more
                layers[-1] = Layer(layers[-1].name, layers[-1].size + layer.size)
                ready[-1] = max(ready[-1], seconds)
            else:
                partitions = more
                layers.append(layer)
                ready.append(seconds)
                kinds.append(kind)
        return layers, ready

    def _step(
        self,
        layers: Sequence[Layer],
        run: Run,
        lowered: Lowered,
        cluster: Cluster,
        symmetric: bool,
    ) -> SimulatedStep:
        model, options = self.model, self.options
        backward, forward = sum(model.backward), sum(model.forward)
        done = [
            max(run.end[t] for t in tasks) + cluster.device_seconds(layer.size)
            for tasks, layer in zip(lowered.outputs, layers)
        ]
        if options.overlap_forward:
            by_name = dict(zip((layer.name for layer in layers), done))
            end = backward
            for layer, seconds in zip(model.layers, model.forward):
                end = max(end, by_name.get(layer.name, 0.0)) + seconds
        else:
            end = max(backward, *done) + forward
        alone = backward + forward
        pools = [sum(run.compute_busy)] if cluster.shared_hosts else run.compute_busy
        hosts = options.nodes + (0 if symmetric else options.servers)
        # With symmetry there is one host. Otherwise all hosts' traffic is spread over them.
        share = 1 if symmetric else hosts
        return SimulatedStep(
            seconds=end,
            compute=alone,
            exposed=end - alone,
            efficiency=alone / end if end > 0 else 1.0,
            send_use=max(run.send_busy) / end if end > 0 else 0.0,
            compute_use=max(pools) / cluster.threads / end if end > 0 else 0.0,
            bytes_per_host=run.bytes / share,
            messages_per_host=run.messages / share,
            hosts=hosts,
            symmetric=symmetric,
            result=run,
            lowered=lowered,
        )
