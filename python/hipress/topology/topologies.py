"""All topologies by name. A new one is a file in this folder and a line in FILES."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from hipress.topology.graph import Graph
from hipress.topology.topology import GraphRequest, Topology

FILES = ("ps", "colocated", "ring", "tree", "butterfly", "star", "hierarchical")
"""Modules of this package that define a topology. The default of a job is the first one that
matches its use of servers."""

TOPOLOGIES: dict[str, Topology] = {}
"""All topologies, by their names in ``compression_params={'topology': ...}`` and ``--topo``."""


def register(topology: Topology) -> None:
    """Register a topology under its name.

    Raises:
        ValueError: If the name exists or is invalid.
    """
    name = topology.name
    if name.lower().split() != [name] or name == "auto" or name in TOPOLOGIES:
        raise ValueError(f"a topology needs a name of its own in small letters, not {name!r}")
    TOPOLOGIES[name] = topology


for _file in FILES:
    register(importlib.import_module(f"hipress.topology.{_file}").TOPOLOGY)


def names(servers: bool | None = None) -> list[str]:
    """Return all names, or those of topologies that need servers (True) or do not (False)."""
    return [n for n, t in TOPOLOGIES.items() if servers is None or t.needs_servers == servers]


def either(choices: Iterable[str]) -> str:
    """Return names as text: "ps, ring or tree"."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def named(topology: str) -> str:
    """Return the registered name of ``topology`` in any capitalization (``PS``, ``Ring``)."""
    name = str(topology).lower()
    if name not in TOPOLOGIES:
        raise ValueError(f"there is no topology {topology!r}; there are {', '.join(TOPOLOGIES)}")
    return name


def default(num_servers: int) -> str:
    """Return the topology of a job that does not choose one."""
    return names(servers=num_servers > 0)[0]


def among_workers(topology: str) -> str:
    """Return the name of ``topology`` in a job without servers, where "ps" is "colocated"."""
    name = named(topology)
    return TOPOLOGIES[name].among_workers or name


def that_encode_each() -> str:
    """Return the topologies that encode each worker's own gradient, as text."""
    return either(
        f"{name} with one device for each host" if topology.needs_devices_per_host else name
        for name, topology in TOPOLOGIES.items()
        if topology.encodes_each
    )


def build(
    topology: str, n: int, num_workers: int, num_servers: int = 0, **options: object
) -> Graph:
    """Return the graph of one gradient of ``n`` elements.

    ``options`` are other fields of a :class:`.GraphRequest`: ``home``, ``partition_elements``,
    ``partitions``, ``bigarray_bound``, ``sync``, ``devices_per_host`` and ``compress``.

    Raises:
        ValueError: If the request is invalid.
    """
    request = GraphRequest(n, num_workers, num_servers, **options)  # type: ignore[arg-type]
    chosen = TOPOLOGIES[named(topology)]
    if n < 1 or num_workers < 1:
        raise ValueError(
            f"a gradient needs at least one element and worker, got n={n}, "
            f"num_workers={num_workers}"
        )
    if request.partitions is not None and request.partitions < 1:
        raise ValueError(
            f"a gradient needs at least one partition, got partitions={request.partitions}"
        )
    if request.devices_per_host < 1:
        raise ValueError(
            f"a host has at least one device, got devices_per_host={request.devices_per_host}"
        )
    if chosen.needs_servers and num_servers < 1:
        raise ValueError(
            f"topology {chosen.name} needs servers and the job has none: start some (-s), or "
            f"choose a topology without: {', '.join(names(servers=False))}"
        )
    if not request.sync and not chosen.asynchronous:
        why = f"asynchronous training needs servers, which topology {chosen.name} does not use"
        if chosen.needs_servers:
            why = f"topology {chosen.name} has no asynchronous mode"
        others = either(t.name for t in TOPOLOGIES.values() if t.asynchronous)
        raise ValueError(f"{why}: choose topology {others}")
    return chosen.build(request)
