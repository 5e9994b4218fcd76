"""Setting of a simulation, from a profile: hosts, links, codecs, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hipress.planning import plan as plans
from hipress.planning import planner, profiles
from hipress.planning.cluster import Cluster, Costs
from hipress.planning.plan import Decision, GradientSize
from hipress.planning.profiles import MeasuredProfile
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate


@dataclass(frozen=True)
class Setting:
    """Cluster, its codecs, and the decision about each gradient."""

    cluster: Cluster
    costs: Costs
    plan: Mapping[str, Decision] | None


def read(
    profile: str,
    codec: str,
    plan: str,
    model: Model,
    topology: str,
    nodes: int,
    changes: Mapping[str, object] | None = None,
) -> Setting:
    """Return the setting that a command line describes.

    ``codec`` is a compression type, "none", or "" for the profile's only one. ``plan`` is a file,
    "auto", or "" for none. ``changes`` are fields of the profile's cluster.
    """
    loaded = profiles.load(profile)
    cluster = replace(loaded.cluster(), **(changes or {}))
    costs = loaded.costs(codec if codec == "none" else loaded.type_named(codec))
    if codec == "none":
        return Setting(cluster, Costs(costs.plain, costs.plain), None)
    if not plan:
        return Setting(cluster, costs, None)
    if plan != "auto":
        given = plans.load(plan)
        plans.check(given, {layer.name: layer.size for layer in model.layers}, "gradient")
        return Setting(cluster, costs, given)
    gradients = [GradientSize(layer.name, layer.size) for layer in model.layers]
    made = planner.make(gradients, topology, nodes, loaded, codec, changes=changes)
    decisions = {choice.gradient.name: choice.decision for choice in made.choices}
    return Setting(cluster, costs, decisions)


def predict(profile: MeasuredProfile, codec: str, elements: int) -> float:
    """Return the seconds of one gradient on all nodes of the measured cluster, co-located."""
    one = Model("check", "", 1, (Layer("g", elements),), (0.0,), (0.0,))
    options = Options("colocated", profile.nodes)
    return simulate(one, profile.costs(codec), profile.cluster(), options).seconds
