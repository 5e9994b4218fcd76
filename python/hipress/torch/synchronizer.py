"""Synchronises flat tensors of named gradients: compressed what is large, the rest together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from hipress.casync.graph import Graph
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.cuda.device import DEVICES, Device
from hipress.torch.executors.cuda.program import DevicePlan
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.executors.host_bucket import HostBucket
from hipress.torch.executors.keys import Keys, listed, neighbours
from hipress.torch.executors.staging import Staged, backend
from hipress.torch.executors.user_group import Started, UserGroup
from hipress.torch.gradient import Gradient
from hipress.torch.optim.momentum_twice import watch
from hipress.torch.settings import Settings, digest
from hipress.torch.state import checkpoint
from hipress.torch.state.error_feedback import Codecs, Places
from hipress.torch.state.low_rank import Factors
from hipress.torch.state.momentum import SharedMomentum
from hipress.torch.stats import Stats, Traffic, reason

Entry = tuple
"""A gradient's name, its offset in the flat tensor and its count, in elements; for one that lies in
chunks the two numbers more of a :class:`Gradient`."""

class Split(NamedTuple):
    """What of a bucket is compressed; what goes uncompressed, in the fusion buffer or in place."""

    large: list[Entry]
    fused: list[Entry]
    rest: list[Entry]


class Bucket(NamedTuple):
    """What is found out about a bucket once, for all steps in which it is the same."""

    split: Split
    host: HostBucket | None
    device: DevicePlan | None
    keys: list[int]
    """Of the engine's, that no other bucket has."""
    by_group: bool
    """Whether the rest is all-reduced on the user's group."""


class Synchronizer:
    """The compression of one set of gradients on one process group.

    Gradients of fewer than min_size elements go uncompressed, in one fusion buffer for each bucket;
    larger ones that are not compressed go as they lie. Only what the engine cannot take, other
    types and what is in the memory of a GPU whose group is NCCL's, is all-reduced on the user's
    group.

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
        self.average = average
        self.user_group = UserGroup(group, engine.world_size if average else 1)
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
        self._traffic = Traffic()
        self.shared: SharedMomentum | None = None
        if settings.shared_momentum:
            share = 1.0 if average else 1.0 / engine.world_size
            self.shared = SharedMomentum(settings.shared_momentum, begins, share)
        self.keys = Keys(engine, settings, self.places, self.shared)
        if settings.any_momentum:
            watch(self)

    def synchronize(
        self, flat: torch.Tensor, entries: tuple[Entry, ...], what: str
    ) -> torch.futures.Future:
        """Starts to replace the gradients in ``flat`` by their means (or sums) over the ranks.

        :param flat: one-dimensional, contiguous, in host memory or on a GPU
        :param what: names it in errors
        :returns: of ``flat``, or a HipressError
        """
        entries = tuple(entry for entry in entries if entry[2])  # there is nothing to say of none
        staging = self.engine.staging(flat.device)
        future = staging.future()
        if not entries:
            future.set_result(flat)
            return future
        what = f"{what} ({listed([e[0] for e in entries])})"
        try:
            bucket, key = self._bucket(flat, entries)
            if self.settings.encode_on == "device":
                return self._on_device(flat, bucket, key, what)
            fetched = staging.fetch(flat) if bucket.host else None
            rest = self._start_rest(flat, bucket.split.rest, key) if bucket.by_group else None
        except Exception as error:
            future.set_exception(self.engine.fail(error, what))
            return future
        uncompressed = (*bucket.split.fused, *bucket.split.rest)

        def finish(error: Exception | str | None) -> None:
            """In a thread of the library's, or of the user's group."""
            try:
                if error is not None:
                    raise self.engine.fail(error, what)
                with staging.returning(), torch.no_grad():
                    if fetched is not None:
                        fetched.back()
                    if rest is not None:
                        self.engine.wait(rest.work, what, flat.device)
                        rest.back()
                    self._add_momentum(flat, uncompressed)
                    future.set_result(flat)
            except Exception as problem:
                future.set_exception(self.engine.fail(problem, what))

        def when_over(error: str | None) -> None:
            if rest is None:
                finish(error)
            else:  # it waits for the user's group, as no thread of the library's may
                self.engine.submit(lambda: finish(error))

        def run() -> None:
            try:
                bucket.host.run(fetched.host(self.engine.timeout), when_over)
            except Exception as error:
                finish(error)

        if fetched is None:
            self.engine.submit(lambda: finish(None))
        elif isinstance(staging, Staged):
            self.engine.submit(run)
        else:
            run()
        return future

    def _bucket(self, flat: torch.Tensor, entries: tuple[Entry, ...]) -> tuple[Bucket, tuple]:
        if self.settings.encode_on == "device" and self._device is None:
            self._device = DEVICES[flat.device.type](flat.device)
            self.places.device = flat.device
        warming_up = self.step < self.settings.warmup_steps
        self._traffic.add(entries, flat.element_size(), warming_up)
        key = (entries, flat.dtype, flat.device, warming_up, self._codecs_warm_up())
        if key not in self._buckets:
            self._forget(key)
            by_group = self._by_group(flat)
            split = self._split(entries, warming_up, by_group)
            self._buckets[key] = self._planned(split, flat, by_group)
            if not warming_up:
                self.places.tell_unclaimed(e[0] for e in (*split.fused, *split.rest))
        return self._buckets[key], key

    def _on_device(
        self, flat: torch.Tensor, bucket: Bucket, key: tuple, what: str
    ) -> torch.futures.Future:
        """Queues all of it; what is wrong now, or was in an earlier bucket, is the future's."""
        device, plan, (large, _, small) = self._device, bucket.device, bucket.split

        def work() -> None:
            if plan:
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
                self._add_momentum(flat, small)

        def told(problem: str) -> str:
            return problem and f"{what}: {problem}"

        self.look()
        return device.enqueue(flat, work)

    def momentum(self, parameter: torch.nn.Parameter) -> float:
        """What the codec multiplies earlier gradients of this parameter by before it adds the next
        one and encodes the sum, once the warm-up is over; 0 if there is no such momentum. In some
        topologies only some ranks' gradients get it, see :meth:`Settings.check_momentum`."""
        name = self.names.get(id(parameter))
        if name is None or not self._compresses(name, self._elements(parameter)):
            return 0.0
        return self.settings.any_momentum

    def _split(self, entries: Sequence[Entry], warming_up: bool, by_group: bool) -> Split:
        large = [] if warming_up else [e for e in entries if self._compresses(e[0], e[2])]
        small = [e for e in entries if e not in large]
        fuses = large and self._fuses() and not by_group
        most = self.settings.min_size if fuses else 0
        return Split(large, [e for e in small if e[2] < most], [e for e in small if e[2] >= most])

    def _fuses(self) -> bool:
        """Whether small gradients may travel in a buffer of their own."""
        return True

    def _by_group(self, flat: torch.Tensor) -> bool:
        """Whether what goes uncompressed is the user's group's business."""
        on_device = self.settings.encode_on == "device"
        if flat.dtype not in FLAGS or on_device:
            return True
        staged = isinstance(self.engine.staging(flat.device), Staged)
        return staged and backend(self.user_group.group, flat.device).name() == "nccl"

    def _compresses(self, name: str, count: int) -> bool:
        return self.settings.compresses(name, count, self._shapes.get(name, ()))

    def _add_momentum(self, flat: torch.Tensor, uncompressed: Sequence[Entry]) -> None:
        if self.shared is not None and not self.shared.compressed_only:
            for pieces, before in self._with_momentum(flat, [e for e in uncompressed if e[2]]):
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
        if self._device and not self.engine.error and (failure := self.engine.failure()):
            self.engine.fail(failure, "")  # NCCL may hear of it much later
        if self.engine.error:
            raise self.engine.error

    def state_dict(self) -> dict[str, Any]:
        """This rank's residuals, momentum and step, in host memory; see
        :mod:`hipress.torch.state.checkpoint`."""
        if self._device is None:
            return checkpoint.state_dict(self)
        self._device.join()
        found = checkpoint.state_dict(self)
        self.look()  # what is saved is not what a refused payload has left
        return found

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a state; from another number of ranks, topology or type, if it holds all
        ranks' states.

        :raises ValueError: saying what is missing
        """
        if self._device is not None:
            self._device.join()
        checkpoint.load_state_dict(self, saved)

    def _start_rest(self, flat: torch.Tensor, small: list[Entry], key: tuple) -> Started:
        """Starts the sum of what goes uncompressed on the user's own group."""
        pieces = [flat[piece] for entry in small for piece in Gradient(*entry).slices()]
        return self.user_group.all_reduce(flat, pieces, key)

    # Graphs, and the engine's keys.

    def graph(self, gradient: Gradient) -> Graph:
        """The graph by which a gradient is synchronised."""
        size = self.engine.world_size
        return self.settings.graph(gradient.count, size, self._home(gradient), gradient.name)

    def _plain_graph(self, gradient: Gradient) -> Graph:
        """The graph of neighbours that go uncompressed, as they lie."""
        return self.keys.ring_graph(gradient.count, self._home(gradient))

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
            self.keys.drop(self._buckets.pop(old).keys)
            self.user_group.memory.pop(old, None)

    def _planned(self, split: Split, flat: torch.Tensor, by_group: bool) -> Bucket:
        large, fused, rest = ([Gradient(*entry) for entry in entries] for entries in split)
        if self.settings.encode_on == "device":
            plan = self._device_plan(large, flat.dtype) if large else None
            self.places.dealt_out(gradient.name for gradient in large)
            return Bucket(split, None, plan, [], True)
        if not large and by_group:
            return Bucket(split, None, None, [], True)
        dtype, low_rank = flat.dtype, bool(self.settings.rank and large)
        own: list[int] = []
        in_place: list[tuple[int, int]] = []
        if low_rank:
            factors, own = self._factors(large, fused)
        else:
            in_place = [(self.keys.coded(g, dtype, self.graph), g.offset) for g in large]
            if fused:
                count = sum(g.count for g in fused)
                own = [self.keys.fused("small ones", count, dtype, fused, self._home(fused[0]))]
        for run in [] if by_group else neighbours(rest):
            own.append(self.keys.in_place(run, dtype, self._plain_graph(run)))
            in_place.append((own[-1], run.offset))
        every = (*large, *fused, *(() if by_group else rest))
        fusion = own[0] if fused else 0
        host = HostBucket(self.engine, dtype, every, in_place, fusion, fused, checked=bool(large))
        if low_rank:
            host.set_low_rank(*own[:2], factors, large)
        self.places.dealt_out(gradient.name for gradient in large)
        return Bucket(split, host, None, own, by_group and bool(rest))

    def _factors(
        self, large: list[Gradient], fused: list[Gradient]
    ) -> tuple[list[Factors], list[int]]:
        """What is remembered of matrices, and the keys of all P, small gradients behind, and all Q.
        """
        rank = self.settings.rank
        factors = [self.places.factors(g.name, self._shapes[g.name], rank) for g in large]
        count_p = sum(f.sizes[0] for f in factors) + sum(g.count for g in fused)
        count_q = sum(f.sizes[1] for f in factors)
        home = self._home(large[0])  # so that not all buckets' are summed on the same rank
        p = self.keys.fused("P", count_p, torch.float32, large, home)
        q = self.keys.fused("Q", count_q, torch.float32, large, home + 1)
        return factors, [p, q]

    def _device_plan(self, gradients: list[Gradient], dtype: torch.dtype) -> DevicePlan:
        graphs = [self.graph(g) for g in gradients]
        text = f"{self.settings.describe()} {gradients} {dtype}"
        codecs = self.places.codecs
        if not self._codecs_warm_up() and self.settings.params.get("warmup"):
            # From here on payloads are shorter, and the room for them is what is sent.
            params = {**self.settings.params, "warmup": 0}
            codecs = Codecs(self.settings.type, params, self.average)
        return DevicePlan(
            self._device, self.user_group.group, gradients, graphs, self.engine.rank,
            self.engine.world_size, dtype, self.places, digest(text), codecs,
        )  # fmt: skip

    def _codecs_warm_up(self) -> bool:
        """Whether payloads on a device may be longer than they will be."""
        steps = int(self.settings.params.get("warmup", 0))
        if self.settings.encode_on != "device" or not steps:
            return False
        return self.step < self.settings.warmup_steps + steps  # codecs count what they encode
