"""Runs plans on a process group: several buckets at a time, in threads of its own."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import queue
import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from hipress.torch.message import Message
from hipress.torch.notice import Notice
from hipress.torch.plan import Plan
from hipress.torch.staging import Host, backend, staging

if TYPE_CHECKING:
    from hipress.torch.low_rank_plan import LowRankPlan

IN_FLIGHT = 4
"""Buckets that are synchronised at a time, each with small gradients beside the large ones."""

_AHEAD = 2
"""Stages of a plan whose messages may come before they are asked for; to ask for all of them first
would delay the first that is sent."""

_NEVER_SENT = 1 << 30
"""A tag that no message has."""

_LOOK = 1.0
"""Seconds between looks at whether another rank has given up, where no connection tells."""


class HipressError(RuntimeError):
    """A collective operation has failed; the sentence says on account of whom."""


class Engine:
    """Exchanges messages with the other ranks of a group.

    :param group: the user's; the messages go over connections of their own between its ranks, so
        that they can neither be taken for the user's nor wait for them
    :param timeout: seconds that a step waits for another rank
    """

    def __init__(self, group: dist.ProcessGroup, timeout: float) -> None:
        self.rank, self.world_size = dist.get_rank(group), dist.get_world_size(group)
        self.timeout = timeout
        self._ranks = dist.get_process_group_ranks(group)
        self._users, self._stagings = group, {}
        self._group = self._notice = None
        if self.world_size > 1:
            names: list = [None] * self.world_size
            dist.all_gather_object(names, uuid.uuid4().hex, group=group)
            store = dist.PrefixStore(f"hipress/{names[0]}", distributed_c10d._get_default_store())
            self._notice = Notice(store, self.rank)
            self._group = dist.ProcessGroupGloo(
                store, self.rank, self.world_size, datetime.timedelta(seconds=timeout)
            )
        self._tags = 0
        self.error: HipressError | None = None
        self._failing = threading.Lock()
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        _engines.add(self)

    def tags(self, plan: Plan | LowRankPlan) -> int:
        """Tags for a plan's messages: every rank makes its plans in the same order."""
        first, self._tags = self._tags, self._tags + len(plan.exchanges)
        return first

    def staging(self, device: torch.device) -> Host:
        """How tensors on ``device`` are synchronised."""
        if device not in self._stagings:
            self._stagings[device] = staging(device)
        return self._stagings[device]

    def submit(self, job: Callable[[], None]) -> None:
        """Runs ``job`` in a thread of the engine; jobs begin in the order of the calls.

        All ranks submit in the same order, so the oldest unfinished job is in work on all of them,
        and however few threads there are, none waits for ever.
        """
        if len(self._threads) < 2 * IN_FLIGHT:
            thread = threading.Thread(target=self._work, name="hipress", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        torch.set_grad_enabled(False)  # per thread
        while (job := self._jobs.get()) is not None:
            job()

    def stop(self, deadline: float) -> None:
        """Lets the threads end, and waits for it until ``deadline`` (time.monotonic)."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))

    def run(self, plan: Plan, flat: torch.Tensor, tag: int, what: str) -> None:
        """Synchronises a bucket.

        :param flat: contiguous; holds this rank's gradients, and then the results
        :param what: names the bucket in errors
        :raises HipressError: if a rank has died, is silent for too long, or sends something else
        """
        if self.error:
            raise self.error
        try:
            self._run(plan, flat, tag, what)
        except Exception as error:
            raise self.fail(error, what) from error

    def fail(self, error: Exception, what: str) -> HipressError:
        """Notes a failure, which ends all later steps, here and on the other ranks; returns the
        first one."""
        with self._failing:
            if self.error is None:
                if not isinstance(error, HipressError):
                    error = HipressError(f"{what}: {error}")
                self.error = error
                self._give_up()
        return self.error

    def _give_up(self) -> None:
        """Ends the others' waiting: leaves them word why, then closes all connections."""
        if self._group is None:
            return
        self._notice.post(str(self.error))
        nothing = torch.empty(1, dtype=torch.uint8)
        for peer in set(range(self.world_size)) - {self.rank}:
            # Gloo has no call that closes connections (abort does nothing), but closes those to
            # all ranks when a wait takes too long; on one that is closed already it fails at once.
            with contextlib.suppress(RuntimeError):
                work = self._group.recv([nothing], peer, _NEVER_SENT)
                work.wait(datetime.timedelta(milliseconds=1))

    def wait(self, work: dist.Work, what: str, device: torch.device) -> None:
        """Waits for a collective operation of the user's group that all ranks take part in; NCCL's
        are waited for by the current stream, and NCCL watches them.

        :raises HipressError: if it fails, takes longer than the timeout, or another rank gives up
        """
        if backend(self._users, device).name() == "nccl":
            work.wait()
            return
        deadline = time.monotonic() + self.timeout
        done = False
        while True:
            left = max(deadline - time.monotonic(), 0.001)
            try:
                work.wait(datetime.timedelta(seconds=min(left, _LOOK)))
                return
            except RuntimeError as error:
                if work.is_completed() and not done:
                    done = True  # perhaps since that wait ended: the next says how, and at once
                    continue
                over = done or left <= _LOOK
                if over:  # who fails has heard of a death, but not on these connections yet perhaps
                    lost, told = self._find_lost(_LOOK if done else 0.0)
                else:
                    lost, told = [], self._told()
                if told:
                    raise HipressError(f"{what}: {told}") from error
                if over:
                    died = f"rank {' and '.join(map(str, lost))} has died"
                    silent = f"a rank has died or is more than {self.timeout:g} s behind"
                    raise HipressError(
                        f"{what}: {died if lost else silent}: the all-reduce of what goes "
                        f"uncompressed failed ({str(error).splitlines()[0]})"
                    ) from error

    def _run(self, plan: Plan, flat: torch.Tensor, tag: int, what: str) -> None:
        plan.begin(flat)
        incoming: list[dict[int, dist.Work]] = []

        def receive(stages: int) -> None:
            """Starts to receive what comes in so many stages, if it has not."""
            for stage in range(len(incoming), min(stages, len(plan.exchanges))):
                receives = plan.exchanges[stage].receive.items()
                incoming.append({
                    peer: self._start("receive from", peer, what, message.tensor, tag + stage)
                    for peer, message in receives
                })  # fmt: skip

        deadline = time.monotonic() + self.timeout
        outgoing: list[tuple[int, dist.Work]] = []

        def sent() -> None:
            for peer, work in outgoing:
                self._wait(work, "send to", peer, what, deadline)
            outgoing.clear()

        for stage, exchange in enumerate(plan.exchanges):
            receive(stage + _AHEAD)
            awaited = stage - plan.waves
            if awaited >= 0:
                for peer, work in incoming[awaited].items():
                    self._wait(work, "receive from", peer, what, deadline)
                    self._check(plan.exchanges[awaited].receive[peer], peer, what)
                plan.arrived(awaited)
            plan.compute(stage, flat)
            if stage % plan.waves == 0:
                # A level's messages to a fast peer would take the network from those of the level
                # before to a slow one, for which all its other peers' next level waits.
                sent()
            for peer, message in exchange.send.items():
                work = self._start("send to", peer, what, message.used(), tag + stage)
                outgoing.append((peer, work))
        sent()
        plan.end(flat)

    def _check(self, message: Message, peer: int, what: str) -> None:
        wrong = message.check()
        if wrong:
            raise HipressError(
                f"{what}: rank {self._ranks[peer]} sent {wrong}; are model, compression and "
                "versions the same on all ranks?"
            )

    def _lost_ranks(self) -> tuple[list[int], str]:
        """Those that have closed their connections, and what was said of it.

        They have died, or have given up, and said why if the job's store is there. Rank 0 keeps it,
        unless torchrun does: if both are gone, the others closed theirs over that.
        """
        lost = []
        for peer in set(range(self.world_size)) - {self.rank} if self._group else ():
            try:
                self._group.recv([torch.empty(1, dtype=torch.uint8)], peer, _NEVER_SENT)
            except RuntimeError:
                lost.append(self._ranks[peer])
        told = self._told()  # after that look: whoever gives up says why, then closes them
        return [0] if told is None and 0 in lost else sorted(lost), told or ""

    def _find_lost(self, seconds: float) -> tuple[list[int], str]:
        """The same, but looks again for so long if there is nothing yet."""
        until = time.monotonic() + seconds
        while True:
            lost, told = self._lost_ranks()
            if lost or told or time.monotonic() >= until:
                return lost, told
            time.sleep(0.02)

    def _told(self) -> str | None:
        return self._notice.read() if self._notice else ""

    def _start(
        self, doing: str, peer: int, what: str, tensor: torch.Tensor, tag: int
    ) -> dist.Work:
        try:
            if doing == "send to":
                return self._group.send([tensor], peer, tag)
            return self._group.recv([tensor], peer, tag)
        except RuntimeError as error:
            raise self._lost(doing, peer, what, error) from error

    def _wait(self, work: dist.Work, doing: str, peer: int, what: str, deadline: float) -> None:
        left = max(deadline - time.monotonic(), 0.001)
        try:
            work.wait(datetime.timedelta(seconds=left))
        except RuntimeError as error:
            if time.monotonic() < deadline - 0.001:
                raise self._lost(doing, peer, what, error) from error
            raise HipressError(
                f"{what}: waited {self.timeout:g} s to {doing} rank {self._ranks[peer]}; it hangs, "
                "is far behind, or did not compute these gradients (a parameter unused in its "
                "forward pass needs DDP's find_unused_parameters=True)"
            ) from error

    def _lost(self, doing: str, peer: int, what: str, error: Exception) -> HipressError:
        if self.error:
            return self.error
        lost, told = self._lost_ranks()
        if told:
            return HipressError(f"{what}: {told}")
        rank = 0 if lost == [0] else self._ranks[peer]
        return HipressError(
            f"{what}: could not {doing} rank {rank}, which has died or given up "
            f"({str(error).splitlines()[0]})"
        )


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()

_LAST = 2.0
"""Seconds that a process which ends waits for its engines' threads."""


@atexit.register
def _stop_all() -> None:
    # A thread that comes back from PyTorch's C++ when Python has ended takes the process with it.
    deadline = time.monotonic() + _LAST
    for engine in list(_engines):
        engine.stop(deadline)
