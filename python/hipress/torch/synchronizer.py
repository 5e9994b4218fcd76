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
from hipress.torch.device import DEVICES, Device
from hipress.torch.device_plan import DevicePlan
from hipress.torch.engine import Engine, HipressError
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
        self._device: Device | None = None
        self._plans: dict[tuple, tuple[Plan | DevicePlan, int]] = {}
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
        if self.settings.encode_on == "device" and self._device is None:
            self._device = DEVICES[flat.device.type](flat.device)
            self.places.device = flat.device
        warming_up = self.step < self.settings.warmup_steps
        compresses = self.settings.compresses
        large = [] if warming_up else [e for e in entries if compresses(e[0], e[2])]
        small = [e for e in entries if e not in large]
        what = f"{what} ({_listed([e[0] for e in entries])})"
        key = (entries, flat.dtype, warming_up or self._codecs_warm_up())
        if large and key not in self._plans:
            plan = self._plan(large, flat)
            self._plans[key] = (plan, self.engine.tags(plan))
        if self.settings.encode_on == "device":
            return self._on_device(flat, small, key, bool(large), what)
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
            _scatter(rest, flat, small)

        def job() -> None:
            try:
                with staging.returning():
                    run()
                    future.set_result(flat)
            except Exception as error:
                future.set_exception(self.engine.fail(error, what))

        self.engine.submit(job)
        return future

    def _on_device(
        self, flat: torch.Tensor, small: list[Entry], key: tuple, mixed: bool, what: str
    ) -> torch.futures.Future:
        """Queues all of it; what is wrong now, or was in an earlier bucket, is the future's."""
        device = self._device

        def work() -> None:
            if mixed:
                plan, _ = self._plans[key]
                plan.run(flat)
                device.report(plan.numbers, lambda copy: told(plan.problem(copy)))
            rest, pending = self._start_rest(flat, small, key, mixed)
            if pending is not None:
                self.engine.wait(pending, what, flat.device)
                _scatter(rest, flat, small)

        def told(problem: str) -> str:
            return problem and f"{what}: {problem}"

        try:
            self.look()
            return device.enqueue(flat, work)
        except Exception as error:
            failed = torch.futures.Future()
            failed.set_exception(self.engine.fail(error, what))
            return failed

    def look(self) -> None:
        """Raises what has gone wrong on a GPU and is known by now; waits for nothing.

        :raises HipressError: which all later calls raise, too
        """
        problem = self._device.look() if self._device else ""
        if problem:
            self.engine.fail(HipressError(problem), "")
        if self.engine.error:
            raise self.engine.error

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals, momentum and step, in host memory; see
        :mod:`hipress.torch.state`."""
        if self._device is None:
            return state.state_dict(self)
        self._device.join()
        found = state.state_dict(self)
        self.look()  # what is saved is not what a refused payload has left
        return found

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a state; from another number of ranks, topology or type, if it holds all
        ranks' states.

        :raises ValueError: saying what is missing
        """
        if self._device is not None:
            self._device.join()
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

    def _plan(self, large: list[Entry], flat: torch.Tensor) -> Plan | DevicePlan:
        gradients = [Gradient(*entry) for entry in large]
        graphs = [self.graph(g) for g in gradients]
        text = f"{self.settings.describe()} {gradients} {flat.dtype}"
        about = (
            gradients, graphs, self.engine.rank, self.engine.world_size, flat.dtype, self.places,
            digest(text),
        )  # fmt: skip
        if self.settings.encode_on == "host":
            return Plan(*about)
        codecs = self.places.codecs
        if not self._codecs_warm_up() and self.settings.params.get("warmup"):
            # From here on payloads are shorter, and the room for them is what is sent.
            params = {**self.settings.params, "warmup": 0}
            codecs = Codecs(self.settings.type, params, self.average)
            self._plans = {key: plan for key, plan in self._plans.items() if not key[2]}
        return DevicePlan(self._device, self._group, *about, codecs)

    def _codecs_warm_up(self) -> bool:
        """Whether payloads on a device may be longer than they will be."""
        on_device = self.settings.encode_on == "device"
        return on_device and self.step < int(self.settings.params.get("warmup", 0))


def _scatter(rest: torch.Tensor, flat: torch.Tensor, small: list[Entry]) -> None:
    """Puts what went uncompressed back to where it lies in the bucket."""
    if rest is flat:
        return
    at = 0
    for _, offset, count in small:
        flat[offset : offset + count].copy_(rest[at : at + count])
        at += count


def _listed(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
