"""Choice of each key's graph: topology, partitions, and whether to compress."""

from __future__ import annotations

import copy
import logging
import os

from hipress.config import AUTO, CompressionConfig
from hipress.planning import plan as plans
from hipress.topology import Graph, topologies
from hipress.topology.graph import PARTITION_ELEMENTS
from hipress.topology.topology import BIGARRAY_BOUND

_log = logging.getLogger("hipress")


class KeyGraphs:
    """Builder of one graph per key, the same on every worker.

    The environment supplies what compression parameters leave open: ``HIPRESS_TOPOLOGY``,
    ``HIPRESS_PLAN``, ``HIPRESS_DEVICES_PER_HOST``, ``HIPRESS_PARTITION_ELEMENTS`` and
    ``MXNET_KVSTORE_BIGARRAY_BOUND``. Every method raises a ValueError for impossible settings.
    """

    def __init__(self, num_workers: int, num_servers: int) -> None:
        self._num_workers = num_workers
        self._num_servers = num_servers
        self._requested = os.environ.get("HIPRESS_TOPOLOGY") or AUTO
        self._devices_per_host = _number("HIPRESS_DEVICES_PER_HOST", 0)
        self._plan: dict[str, plans.Decision] = {}
        self._warned = False  # warned of a key that is not in the plan
        self.partition_elements = _number("HIPRESS_PARTITION_ELEMENTS", PARTITION_ELEMENTS)
        """Approximate maximum elements of a partition, for keys without a plan."""
        self._next_home = 0
        self.in_use = False
        """Whether a key is initialized. The topology is then fixed."""
        self.sync = True
        """Whether updates are synchronous."""
        if os.environ.get("HIPRESS_PLAN", AUTO) not in ("", AUTO):
            self._plan = plans.load(os.environ["HIPRESS_PLAN"])

    @property
    def topology(self) -> str:
        """Name of the topology in use, which is the same for all keys."""
        if self._requested.lower() == AUTO:
            return topologies.default(self._num_servers)
        name = topologies.named(self._requested)
        if topologies.TOPOLOGIES[name].needs_servers and self._num_servers == 0:
            topologies.build(name, 1, self._num_workers)  # raises
        return name

    @property
    def serverless(self) -> bool:
        """Whether only workers hold keys."""
        return not topologies.TOPOLOGIES[self.topology].needs_servers

    def set_sync(self, sync: bool) -> None:
        """Choose synchronous or asynchronous mode."""
        if not sync:
            self._build(1, home=0, sync=False)  # raises, if the topology has no such mode
        self.sync = sync

    def configured(self, config: CompressionConfig) -> KeyGraphs:
        """Return a copy with the topology, devices_per_host and plan of a compression.

        They apply to keys that are initialized later. If keys exist, another topology is an error.
        """
        new = copy.copy(self)
        new._requested = config.topology or self._requested
        new._devices_per_host = config.devices_per_host or self._devices_per_host
        new._plan = config.decisions or self._plan
        new._build(1, home=0, sync=self.sync)  # raises if the settings do not match
        if self.in_use and new.topology != self.topology:
            raise ValueError(
                f"topology {new._requested} must be chosen before the first key is initialized; "
                f"this job's keys use {self.topology}"
            )
        return new

    def decision(self, name: str, n: int) -> plans.Decision | None:
        """Return the plan's decision about a key of ``n`` elements, or None if there is none.

        Gluon's Trainer numbers parameters. A numeric key that is not in the plan is therefore found
        by its index, or, because a Trainer sorts parameters, by its size: decisions depend on
        sizes.
        """
        found = self._plan.get(name)
        if found is None and name.isdecimal():
            decisions, position = list(self._plan.values()), int(name)
            found = decisions[position] if position < len(decisions) else None
            if found is not None and found.size not in (None, n):
                found = next((each for each in decisions if each.size == n), found)
        if found is not None:
            found.check(name, n)
        return found

    def next(self, n: int, name: str = "", compress: bool = True) -> tuple[Graph, str]:
        """Return the graph for the next key, of ``n`` elements, and a text that describes it."""
        decision = self.decision(name, n)
        options: dict[str, object] = {"home": self._next_home, "sync": self.sync}
        if decision is not None:
            options.update(partitions=decision.partitions, compress=decision.compress)
        if not compress:
            options["compress"] = False
        elif self._plan and decision is None and not self._warned:
            self._warned = True
            _log.warning(
                "the plan has no gradient %r: it goes as without a plan; those it has are %s",
                name,
                plans.some(self._plan),
            )
        graph = self._build(n, **options)
        self._next_home += 1
        return graph, f"{self.topology} {sorted(options.items())} {graph.partitions}"

    def _build(self, n: int, **options: object) -> Graph:
        topology = self.topology
        per_host = topologies.TOPOLOGIES[topology].needs_devices_per_host
        if per_host and not self._devices_per_host:
            raise ValueError(
                f"topology {topology} needs devices_per_host, the number of workers on each host, "
                "in compression_params or as --devices-per-host"
            )
        return topologies.build(
            topology,
            n,
            self._num_workers,
            self._num_servers,
            partition_elements=self.partition_elements,
            bigarray_bound=_number("MXNET_KVSTORE_BIGARRAY_BOUND", BIGARRAY_BOUND),
            devices_per_host=max(1, self._devices_per_host),
            **options,
        )


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable)
    if not text:
        return otherwise
    if not text.isdecimal():
        raise ValueError(f"environment variable {variable} is {text!r}, but must be a whole number")
    return int(text)
