"""Synchronises flat tensors of named gradients: compressed what is large, the rest together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from hipress.casync.graph import Graph
from hipress.casync.topologies import MIN_PARTITION_ELEMENTS
from hipress.torch import state
from hipress.torch.beside import Beside
from hipress.torch.device import DEVICES, Device
from hipress.torch.device_plan import DevicePlan
from hipress.torch.engine import Engine, HipressError
from hipress.torch.layout import Gradient
from hipress.torch.low_rank_plan import LowRankPlan
from hipress.torch.momentum import SharedMomentum, watch
from hipress.torch.places import Codecs, Places
from hipress.torch.plan import Plan
from hipress.torch.settings import Settings, digest
from hipress.torch.staging import Staged
from hipress.torch.stats import Stats, Traffic, reason

Entry = tuple
"""A gradient's name, its offset in the flat tensor and its count, in elements; for one that lies in
chunks the two numbers more of a :class:`Gradient`."""


LEAST = 1024
"""Elements of what goes uncompressed that are worth a message of their own: 4 KiB of float32."""


class Split(NamedTuple):
    """What of a bucket is compressed, what goes uncompressed beside that, and what by itself."""

    large: list[Entry]
    beside: list[Entry]
    rest: list[Entry]


class Planned(NamedTuple):
    """How a bucket's large gradients are synchronised, and small ones in messages of their own."""

    plan: Plan | DevicePlan | LowRankPlan
    tag: int
    beside: Beside | None


class Bucket(NamedTuple):
    """What is found out about a bucket once, for all steps in which it is the same."""

    split: Split
    planned: Planned | None
    """None: nothing of it is compressed."""


class Rest(NamedTuple):
    """What goes uncompressed, on its way; ``back()`` puts results where the gradients are."""

    work: dist.Work
    back: Callable[[], None]


class Synchronizer:
    """The compression of one set of gradients on one process group.

    Gradients of fewer than min_size elements go uncompressed, beside their bucket's large ones: by
    the engine, with "ps" in two hops, where Gloo's ring takes 2(N-1), each behind all that is on
    its way. Others that go uncompressed are all-reduced on the user's group.

    In checkpoints it is rank ``rank`` of ``world_size`` that synchronise so, by ``topology``.

    :param parameters: with their names, in an order that is the same on all ranks
    :param average: whether results are means, else sums
    :param begins: for gradients that are a part of a parameter's: which of its elements comes first
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        group: dist.ProcessGroup,
        parameters: Sequence[tuple[str, torch.nn.Parameter]],
        average: bool = True,
        begins: Mapping[str, int] | None = None,
    ) -> None:
        self.settings, self.engine, self.step = settings, engine, 0
        self._group, self.average = group, average
        self.rank, self.world_size = engine.rank, engine.world_size
        self.topology = settings.topology
        self.names = {id(parameter): name for name, parameter in parameters}
        self.sizes = sizes = {name: parameter.numel() for name, parameter in parameters}
        self._shapes = {name: self._shape(parameter) for name, parameter in parameters}
        self._homes = {name: home for home, name in enumerate(sizes)}
        # Factors are not cut.
        decisions = {} if settings.rank else settings.decisions
        parts = sorted((n, d.partitions) for n, d in decisions.items() if d.compress)
        about = list(sizes.items()), begins, average, settings.devices_per_host, parts
        self.layout = digest(str(about))
        """Equal where the same task does the same for the same elements, in jobs of one size."""
        codecs = Codecs(*settings.codec, average)
        self.places = Places(codecs, engine.rank, engine.world_size, begins)
        self._device: Device | None = None
        self._buckets: dict[tuple, Bucket] = {}
        self._rest: dict[tuple, torch.Tensor] = {}
        self._traffic = Traffic()
        self.shared: SharedMomentum | None = None
        if settings.shared_momentum:
            share = 1.0 if average else 1.0 / engine.world_size
            self.shared = SharedMomentum(settings.shared_momentum, begins, share)
        if settings.any_momentum:
            watch(self)

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
        entries = tuple(entry for entry in entries if entry[2])  # there is nothing to say of none
        if not entries:
            future = self.engine.staging(flat.device).future()
            future.set_result(flat)
            return future
        if self.settings.encode_on == "device" and self._device is None:
            self._device = DEVICES[flat.device.type](flat.device)
            self.places.device = flat.device
        warming_up = self.step < self.settings.warmup_steps
        self._traffic.add(entries, flat.element_size(), warming_up)
        what = f"{what} ({_listed([e[0] for e in entries])})"
        key = (entries, flat.dtype, flat.device, warming_up, self._codecs_warm_up())
        if key not in self._buckets:
            self._forget(key)
            split = self._split(entries, warming_up, flat.device)
            planned = self._planned(split, flat) if split.large else None
            self._buckets[key] = Bucket(split, planned)
            if not warming_up:
                self.places.tell_unclaimed(e[0] for e in (*split.beside, *split.rest))
        if self.settings.encode_on == "device":
            return self._on_device(flat, key, what)
        (_, beside, small), planned = self._buckets[key]
        staging = self.engine.staging(flat.device)
        future = staging.future()
        fetched = staging.fetch(flat) if planned else None
        rest = self._start_rest(flat, small, key) if small else None
        finish_beside = None
        if planned and planned.beside:
            finish_beside = planned.beside.start(self.engine, flat, what, after)

        def run() -> None:
            if after is not None:
                after.wait()
            if fetched is not None:
                host = fetched.host(self.engine.timeout)
                planned.plan.run(self.engine, host, planned.tag, what)
                fetched.back()
            if finish_beside is not None:
                finish_beside()
            if rest is not None:
                self.engine.wait(rest.work, what, flat.device)
                rest.back()
            self._uncompressed(flat, (*beside, *small))

        def job() -> None:
            try:
                with staging.returning():
                    run()
                    future.set_result(flat)
            except Exception as error:
                future.set_exception(self.engine.fail(error, what))

        self.engine.submit(job)
        return future

    def _on_device(self, flat: torch.Tensor, key: tuple, what: str) -> torch.futures.Future:
        """Queues all of it; what is wrong now, or was in an earlier bucket, is the future's."""
        device, ((large, _, small), planned) = self._device, self._buckets[key]

        def work() -> None:
            if planned:
                plan = planned.plan
                for pieces, before in self._with_momentum(flat, large):
                    self.shared.add(pieces, before)
                plan.run(flat)
                for pieces, before in self._with_momentum(flat, large):
                    self.shared.keep(pieces, before)
                device.report(plan.numbers, lambda copy: told(plan.problem(copy)))
            if small:
                rest = self._start_rest(flat, small, key)
                self.engine.wait(rest.work, what, flat.device)
                rest.back()
                self._uncompressed(flat, small)

        def told(problem: str) -> str:
            return problem and f"{what}: {problem}"

        try:
            self.look()
            return device.enqueue(flat, work)
        except Exception as error:
            failed = torch.futures.Future()
            failed.set_exception(self.engine.fail(error, what))
            return failed

    def momentum(self, parameter: torch.nn.Parameter) -> float:
        """What the codec multiplies earlier gradients of this parameter by before it adds the next
        one and encodes the sum, once the warm-up is over; 0 if there is no such momentum. In some
        topologies only some ranks' gradients get it, see :meth:`Settings.check_momentum`."""
        name = self.names.get(id(parameter))
        if name is None or not self._compresses(name, self._elements(parameter)):
            return 0.0
        return self.settings.any_momentum

    def _split(self, entries: Sequence[Entry], warming_up: bool, device: torch.device) -> Split:
        large = [] if warming_up else [e for e in entries if self._compresses(e[0], e[2])]
        small = [e for e in entries if e not in large]
        by_engine = self.settings.rank or self._sends_beside(device)
        most = self.settings.min_size if large and by_engine else 0
        return Split(large, [e for e in small if e[2] < most], [e for e in small if e[2] >= most])

    def _sends_beside(self, device: torch.device) -> bool:
        """Whether small gradients go by the engine, as those in a GPU's memory need not."""
        in_host = self.settings.encode_on == "host"
        return in_host and not isinstance(self.engine.staging(device), Staged)

    def _compresses(self, name: str, count: int) -> bool:
        return self.settings.compresses(name, count, self._shapes.get(name, ()))

    def _uncompressed(self, flat: torch.Tensor, small: Sequence[Entry]) -> None:
        if self.shared is not None and not self.shared.compressed_only:
            for pieces, before in self._with_momentum(flat, [e for e in small if e[2]]):
                self.shared.add(pieces, before, compressed=False)
                self.shared.keep(pieces, before)

    def _with_momentum(
        self, flat: torch.Tensor, entries: Sequence[Entry]
    ) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
        """Each gradient's chunks, and those of the result before, if momentum is shared."""
        for entry in entries if self.shared is not None else ():
            gradient = Gradient(*entry)
            pieces = [flat[piece] for piece in gradient.slices()]
            before = self.shared.of(gradient.name, flat, gradient.count)
            yield pieces, list(before.split([len(piece) for piece in pieces]))

    def _shape(self, parameter: torch.nn.Parameter) -> tuple[int, ...]:
        """Of its gradient, as that lies in the flat tensor."""
        return tuple(parameter.shape)

    def _elements(self, parameter: torch.nn.Parameter) -> int:
        """Of its gradient, as it is synchronised."""
        return parameter.numel()

    @property
    def compresses_now(self) -> bool:
        """Whether the gradients of the last step came after the warm-up."""
        return self.step > self.settings.warmup_steps

    def stats(self) -> Stats:
        """How many bytes of this rank's gradients went compressed and uncompressed, and why."""
        shapes = self._shapes
        return self._traffic.stats(
            lambda name, count, warming_up: reason(
                self.settings, name, count, shapes.get(name, ()), warming_up
            )
        )

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

    def _start_rest(self, flat: torch.Tensor, small: list[Entry], key: tuple) -> Rest:
        """Starts the all-reduce of what goes uncompressed, on the user's own group and in this
        thread, for its collectives must begin in the same order on all ranks."""
        pieces = [flat[offset : offset + count] for _, offset, count in small]
        joined = self._joined(pieces, flat, key)
        if self.average:
            joined.div_(self.engine.world_size)
        work = dist.all_reduce(joined, group=self._group, async_op=True)

        def back() -> None:
            if joined is not flat:
                for piece, values in zip(pieces, joined.split([len(p) for p in pieces])):
                    piece.copy_(values)

        return Rest(work, back)

    def _joined(self, pieces: list[torch.Tensor], flat: torch.Tensor, key: tuple) -> torch.Tensor:
        """The pieces one behind the other: ``flat`` itself if they are all of it."""
        count = sum(len(piece) for piece in pieces)
        if count == len(flat):
            return flat
        if key not in self._rest:
            self._rest[key] = flat.new_empty(count)
        return torch.cat(pieces, out=self._rest[key])

    def graph(self, gradient: Gradient) -> Graph:
        """The graph by which a gradient is synchronised."""
        size = self.engine.world_size
        return self.settings.graph(gradient.count, size, self._home(gradient), gradient.name)

    def _home(self, gradient: Gradient) -> int:
        return self._homes.setdefault(gradient.name, len(self._homes))

    def _forget(self, key: tuple) -> None:
        """Frees what was for buckets in which these gradients are no longer: DDP puts them into
        others after the first step, and a warm-up has an end."""
        names = {name for name, *_ in key[0]}
        # The backend's tensors of one count have one name in every dtype, and on every device.
        over = [
            old for old in self._buckets
            if old[1:3] == key[1:3] and names.intersection(name for name, *_ in old[0])
        ]  # fmt: skip
        for old in over:
            del self._buckets[old]
            self._rest.pop(old, None)

    def _planned(self, split: Split, flat: torch.Tensor) -> Planned:
        gradients = [Gradient(*entry) for entry in split.large]
        small = [Gradient(*entry) for entry in split.beside]
        aside = None
        if self.settings.rank:
            plan = self._low_rank(gradients, small, flat)
        else:
            plan = self._plan(gradients, flat.dtype)
            if count := sum(gradient.count for gradient in small):
                uncoded = self._uncoded("small", count, flat.dtype, small)
                aside = Beside(small, flat.dtype, uncoded, self.engine.tags(uncoded))
        self.places.dealt_out(gradient.name for gradient in gradients)
        return Planned(plan, self.engine.tags(plan), aside)

    def _low_rank(
        self, large: list[Gradient], small: list[Gradient], flat: torch.Tensor
    ) -> LowRankPlan:
        rank = self.settings.rank
        factors = [self.places.factors(g.name, self._shapes[g.name], rank) for g in large]

        def averaged(name: str, count: int) -> Plan:
            # So that not all buckets' factors, which are short, are summed on the same rank.
            return self._uncoded(name, count, torch.float32, large, small, after=name == "Q")

        return LowRankPlan(factors, large, small, flat.dtype, averaged)

    def _uncoded(
        self, name: str, count: int, dtype: torch.dtype, *of: list[Gradient], after: int = 0
    ) -> Plan:
        """For numbers that go as they are. Whoever passes sums on has nothing to remember of them.

        :param of: the gradients they come from, the first of which says on which rank a sum that is
            not cut, or the first part, is made: ``after`` so many ranks more
        """
        size = self.engine.world_size
        about = self.engine.rank, size
        # Cut for all ranks to sum a part, which topologies do by themselves if it is long.
        long = count >= size * MIN_PARTITION_ELEMENTS
        partitions = None if long else max(1, min(size, count // LEAST))
        home = self._home(of[0][0]) + after
        graph = self.settings.graph(count, size, home, partitions=partitions)
        text = f"{self.settings.describe()} {name} of {of} {dtype}"
        places = Places(Codecs("none", {}, self.average), *about)
        return Plan([Gradient(name, 0, count)], [graph], *about, dtype, places, digest(text))

    def _plan(self, gradients: list[Gradient], dtype: torch.dtype) -> Plan | DevicePlan:
        graphs = [self.graph(g) for g in gradients]
        text = f"{self.settings.describe()} {gradients} {dtype}"
        about = (
            gradients, graphs, self.engine.rank, self.engine.world_size, dtype, self.places,
            digest(text),
        )  # fmt: skip
        if self.settings.encode_on == "host":
            return Plan(*about, shared=self.shared)
        codecs = self.places.codecs
        if not self._codecs_warm_up() and self.settings.params.get("warmup"):
            # From here on payloads are shorter, and the room for them is what is sent.
            params = {**self.settings.params, "warmup": 0}
            codecs = Codecs(self.settings.type, params, self.average)
        return DevicePlan(self._device, self._group, *about, codecs)

    def _codecs_warm_up(self) -> bool:
        """Whether payloads on a device may be longer than they will be."""
        steps = int(self.settings.params.get("warmup", 0))
        if self.settings.encode_on != "device" or not steps:
            return False
        return self.step < self.settings.warmup_steps + steps  # codecs count what they encode


def _listed(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
