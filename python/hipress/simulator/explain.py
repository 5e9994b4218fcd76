"""Explanation, from a profile, of each choice's step time on a cluster that need not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hipress.autotune.explanation import FASTER, Explanation, Row, number, pays
from hipress.autotune.measurement import STEP_TOLERANCE, least_lossy
from hipress.planning.cluster import Cluster
from hipress.simulator import setting
from hipress.simulator.models import Model
from hipress.simulator.step import Options, simulate


def explain(
    model: Model, profile: str, types: Sequence[str], options: Options, changes: Mapping[str, float]
) -> Explanation:
    """Return the step time by each of ``types``, the least lossy first, and advice."""
    zeros = (0.0,) * len(model.layers)
    alone = replace(model, forward=zeros, backward=zeros)
    scenes = [
        setting.read(profile, each, "", model, options.topology, options.nodes, changes)
        for each in ("none", *types)
    ]
    cluster = scenes[0].cluster

    def seconds(of: Model, on: Cluster) -> list[float]:
        return [simulate(of, scene.costs, on, options).seconds for scene in scenes]

    steps = seconds(model, cluster)
    chosen = least_lossy(steps, STEP_TOLERANCE)
    names = ["uncompressed", *(scene.costs.compressed.name for scene in scenes[1:])]
    rows = [
        Row(name, 1e3 * gradients, 1.0, chosen=i == chosen, predicted_ms=1e3 * step)
        for i, (name, gradients, step) in enumerate(zip(names, seconds(alone, cluster), steps))
    ]
    computing = sum(model.forward) + sum(model.backward)
    why = "no type would gain 3%"
    if chosen:
        why = f"{steps[0] / steps[chosen]:.2f} times as fast as uncompressed"
    sentence = (
        f"{model.name} on {options.nodes} hosts, {options.topology}: {rows[chosen].method}, for "
        f"{why}; computing takes {number(1e3 * computing)} of a step's "
        f"{number(1e3 * steps[chosen])} ms"
    )
    if cluster.shared_hosts:
        sentence += "; all hosts share the processors of the profile's one machine"
    faster = replace(cluster, bandwidth=FASTER * cluster.bandwidth)
    best = 1e3 * min(steps)
    next_steps = pays(
        best,
        1e3 * min(seconds(model, faster)),
        1e3 * min(seconds(model.with_compute(2 * computing), cluster)) / 2 if computing else best,
    )
    return Explanation(sentence, rows, next_steps=next_steps)
