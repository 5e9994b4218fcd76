"""Synchronises flat tensors of named gradients: compressed what is large, the rest together."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from hipress.casync.graph import Graph
from hipress.torch import state
from hipress.torch.engine import Engine
from hipress.torch.layout import Gradient
from hipress.torch.places import Codecs, Places
from hipress.torch.plan import Plan
from hipress.torch.settings import Settings, digest
from hipress.torch.staging import backend

Entry = tuple[str, int, int]
"""A gradient's name, its offset in the flat tensor and its count, in elements."""


def group_timeout(group: dist.ProcessGroup) -> float:
    """The timeout that a process group was made with, in seconds."""
    options = getattr(backend(group), "options", None)
    timeout = getattr(options, "_timeout", None) or distributed_c10d.default_pg_timeout
    return timeout.total_seconds()


class Synchronizer:
    """The compression of one set of gradients on one process group.

    :param sizes: elements of every gradient by name, in an order that is the same on all ranks
    :param average: whether results are means, else sums
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        group: dist.ProcessGroup,
        sizes: Mapping[str, int],
        average: bool = True,
    ) -> None:
        self.settings, self.engine, self.step = settings, engine, 0
        self._group, self.average = group, average
        self._homes = {name: home for home, name in enumerate(sizes)}
        self.sizes = dict(sizes)
        codecs = Codecs(settings.type, settings.params, average)
        self.places = Places(codecs, engine.rank, engine.world_size)
        self._plans: dict[tuple, tuple[Plan, int]] = {}
        self._rest: dict[tuple, torch.Tensor] = {}

    def synchronize(
        self,
        flat: torch.Tensor,
        entries: tuple[Entry, ...],
        what: str,
        after: threading.Event | None = None,
    ) -> torch.futures.Future:
        """Starts to replace the gradients in ``flat`` by their means (or sums) over the ranks.

        :param flat: one-dimensional, contiguous, in host memory or on a GPU
        :param what: names it in errors
        :param after: not before this, which an earlier call sets
        :returns: of ``flat``, or a HipressError
        """
        warming_up = self.step < self.settings.warmup_steps
        compresses = self.settings.compresses
        large = [] if warming_up else [e for e in entries if compresses(e[0], e[2])]
        small = [e for e in entries if e not in large]
        what = f"{what} ({_listed([e[0] for e in entries])})"
        key = (entries, flat.dtype, warming_up)
        if large and key not in self._plans:
            plan = self._plan(large, flat.dtype)
            self._plans[key] = (plan, self.engine.tags(plan))
        staging = self.engine.staging(flat.device)
        future = staging.future()
        fetched = staging.fetch(flat) if large else None
        rest, work = self._start_rest(flat, small, key, bool(large))

        def run() -> None:
            if after is not None:
                after.wait()
            if fetched is not None:
                plan, tag = self._plans[key]
                self.engine.run(plan, fetched.host(self.engine.timeout), tag, what)
                fetched.back()
            if work is not None:
                self.engine.wait(work, what, flat.device)
            if rest is not flat:
                at = 0
                for _, offset, count in small:
                    flat[offset : offset + count].copy_(rest[at : at + count])
                    at += count

        def job() -> None:
            try:
                with staging.returning():
                    run()
                    future.set_result(flat)
            except Exception as error:
                future.set_exception(self.engine.fail(error, what))

        self.engine.submit(job)
        return future

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals, momentum and step; see :mod:`hipress.torch.state`."""
        return state.state_dict(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a state; from another number of ranks, topology or type, if it holds all
        ranks' states.

        :raises ValueError: saying what is missing
        """
        state.load_state_dict(self, saved)

    def _start_rest(
        self, flat: torch.Tensor, small: list[Entry], key: tuple, mixed: bool
    ) -> tuple[torch.Tensor, dist.Work | None]:
        """Starts the all-reduce of what goes uncompressed, on the user's own group and in this
        thread, for its collectives must begin in the same order on all ranks."""
        if not small:
            return flat, None
        rest = flat
        if mixed:
            if key not in self._rest:
                self._rest[key] = flat.new_empty(sum(count for _, _, count in small))
            rest = self._rest[key]
            torch.cat([flat[offset : offset + count] for _, offset, count in small], out=rest)
        if self.average:
            rest.div_(self.engine.world_size)
        return rest, dist.all_reduce(rest, group=self._group, async_op=True)

    def graph(self, gradient: Gradient) -> Graph:
        """The graph by which a gradient is synchronised."""
        home = self._homes.setdefault(gradient.name, len(self._homes))
        return self.settings.graph(
            gradient.count, self.engine.world_size, home, gradient.name
        )

    def _plan(self, large: list[Entry], dtype: torch.dtype) -> Plan:
        world_size = self.engine.world_size
        gradients = [Gradient(*entry) for entry in large]
        graphs = [self.graph(g) for g in gradients]
        text = f"{self.settings.describe()} {gradients} {dtype}"
        return Plan(
            gradients, graphs, self.engine.rank, world_size, dtype, self.places, digest(text)
        )


def _listed(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
