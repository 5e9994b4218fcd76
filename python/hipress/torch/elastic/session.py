"""One view of an elastic job: its process group, its job of the engine, its steps."""

from __future__ import annotations

import datetime
import os
import threading
import time
from collections.abc import Mapping

import torch
import torch.distributed as dist

from hipress import addresses
from hipress.elastic.agent import Agent
from hipress.elastic.errors import ElasticError
from hipress.elastic.view import View
from hipress.torch.elastic import transfer
from hipress.torch.elastic.carried import Carried
from hipress.torch.elastic.journal import Journal
from hipress.torch.elastic.state import State
from hipress.torch.executors.engine import Engine, HipressError, close_all
from hipress.torch.executors.staging import backend
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the process group's operations. Whoever takes part has said that it is there."""
_POLL_SECONDS = 0.0005


class ViewChange(Exception):
    """The workers change at this step: all of them have completed it."""


class Session:
    """This worker's part of one view.

    :param carried: what error feedback remembers of the view before
    """

    def __init__(
        self, state: State, agent: Agent, view: View, carried: Carried, journal: Journal
    ) -> None:
        self.view, self.carried = view, carried
        self._state, self._agent, self._journal = state, agent, journal
        self._ids = [member.id for member in view.members]
        self.rank, self.size = self._ids.index(agent.id), len(self._ids)
        self.optimizer: DistributedOptimizer | None = None
        self._store: dist.Store | None = None
        self._waking = threading.Lock()
        self._interrupted = ""
        self.norms: dict[str, float] = {}
        """The norms of the members' residuals when they were last compared, by id."""

    # Beginning.

    def open(self) -> None:
        """Connects the members, which all call this; returns when all have the same weights.

        :raises HipressError: if one of them dies meanwhile, as other operations do
        :raises RuntimeError: likewise
        """
        state = self._state
        state.rank, state.size, state.epoch = self.rank, self.size, self.view.epoch
        self.await_all("here")
        self._make_group()
        self._copy_state()
        named = list(state.model.named_parameters())
        self.optimizer = DistributedOptimizer(
            state.optimizer.wrapped, named, timeout=state.timeout, **state.options
        )
        self.carried.give_to(self.optimizer.compression)
        self.optimizer.compression.begin_transaction()
        if why := self._interrupted or self._agent.ended(self.view.epoch):
            raise HipressError(why)
        self._compare(self._digest())

    def await_all(self, what: str) -> None:
        """Waits until all members have come to this point. Unlike a barrier of the process group
        this ends when a member dies, and may take as long as a slow step does."""
        epoch = self.view.epoch
        self._agent.share(epoch, f"{what}/{self.rank}", "1")
        for rank in range(self.size):
            if rank != self.rank:
                self._agent.fetch(epoch, f"{what}/{rank}", self._state.timeout)

    def _make_group(self) -> None:
        me = self.view.members[self.rank]
        os.environ.setdefault("DMLC_NODE_HOST", me.host)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", addresses.interface_with(me.host))
        timeout = datetime.timedelta(seconds=_GROUP_SECONDS)
        first = self.view.members[0]
        if self.rank == 0:
            # Port 0: one that is free.
            self._store = dist.TCPStore(
                me.host, 0, None, True, timeout=timeout, wait_for_workers=False
            )
            self._agent.share(self.view.epoch, "store", str(self._store.port))
        else:
            port = int(self._agent.fetch(self.view.epoch, "store", self._state.timeout))
            self._store = dist.TCPStore(first.host, port, None, False, timeout=timeout)
        dist.init_process_group(
            "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=timeout
        )

    def _copy_state(self) -> None:
        """Has members that are behind copy the source's state."""
        source = self._ids.index(self.view.source)
        behind = [r for r, i in enumerate(self._ids) if i in self.view.behind and r != source]
        if self.rank == source and behind:
            mine = {**self._state.state_dict(), "carried": self.carried.to_copy()}
            data = transfer.pack(mine)
            for rank in behind:
                transfer.send(data, rank)
        elif self.rank in behind:
            found = transfer.unpack(transfer.receive(source))
            self._state.load_state_dict(found)
            self.carried.copy(found["carried"])
            self._journal.write("copied", epoch=self.view.epoch, step=self._state.step)
        if behind:
            self.await_all("copied")
        self._agent.completed(self._state.step, True, self.view.epoch)

    # Steps.

    def applied(self) -> None:
        """Notes that the optimizer has made its step, before it is committed."""
        self._agent.completed(self._state.step + 1, False, self.view.epoch)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """Ends a step of this view.

        :raises ViewChange: if the next view begins here
        """
        state = self._state
        self.optimizer.compression.begin_transaction()  # what is committed is not put back
        self._agent.completed(state.step, True, self.view.epoch)
        digest = self._digest() if state.step % state.check_every == 0 else None
        self._journal.write(
            "step", epoch=self.view.epoch, step=state.step, size=self.size, rank=self.rank,
            digest=digest, **figures,
        )  # fmt: skip
        if digest is not None:
            self._compare(digest)
        newest = self._agent.view()
        if newest is None or newest.epoch > self.view.epoch:
            if newest is not None and newest.boundary is not None:
                if state.step < newest.boundary:
                    return
                self.await_all(f"step {state.step}")
            raise ViewChange

    def _digest(self) -> str:
        return transfer.digest(self._state.model.named_parameters())

    def _compare(self, digest: str) -> None:
        """Compares the members' weights, and exchanges the norms of their residuals.

        :raises WeightsDiffer: on all members
        """
        halves = int(digest[:8], 16), int(digest[8:], 16)
        norm = self.carried.norm(self.optimizer)
        mine = torch.tensor([*halves, self._state.step, norm], dtype=torch.float64)
        found = [torch.empty_like(mine) for _ in range(self.size)]
        self._await(dist.all_gather(found, mine, async_op=True))
        for rank, theirs in enumerate(found):
            if not torch.equal(theirs[:3], found[0][:3]):
                raise WeightsDiffer(
                    f"the weights of ranks 0 and {rank} differ, after steps {int(found[0][2])} and "
                    f"{int(theirs[2])}"
                )
        self.norms = {member: theirs[3].item() for member, theirs in zip(self._ids, found)}

    def _await(self, work: dist.Work) -> None:
        """Waits for an operation of the process group, unlike ``wait()`` only while nobody is
        missing.

        :raises HipressError: if this view is over
        """
        while not work.is_completed():
            if self._interrupted:
                raise HipressError(self._interrupted)
            time.sleep(_POLL_SECONDS)
        work.wait()

    # Ending.

    def await_end(self) -> None:
        """Waits until all members have come to the end of training, or one knows that they have."""
        epoch = self.view.epoch
        try:
            self.await_all("end")
        except ElasticError:  # one that left since, perhaps
            self._agent.fetch(epoch, "over", 0.0)
        self._agent.share(epoch, "over", "1")

    def interrupt(self, why: str) -> None:
        """Ends what this worker waits for, from another thread."""
        with self._waking:
            if not self._interrupted and self._engine is not None:
                self._engine.fail(HipressError(why), "")
            self._interrupted = why

    @property
    def _engine(self) -> Engine | None:
        return None if self.optimizer is None else self.optimizer.compression.engine

    def close(self) -> None:
        """Leaves the view; gradients of a step that is not complete are dropped."""
        with self._waking:
            self._interrupted = "this view is over"
        if self.optimizer is not None:
            self.optimizer.detach()
        close_all()
        for parameter in self._state.model.parameters():
            parameter.grad = None
        if dist.is_initialized():
            _drop_group()
        self._store = None


def _drop_group() -> None:
    """Destroys the default process group. Its end waits for operations with members that are
    silent, which nobody here waits for."""
    held = [dist.group.WORLD, backend(dist.group.WORLD)]
    dist.destroy_process_group()
    threading.Thread(target=held.clear, name="hipress-gloo-end", daemon=True).start()


class WeightsDiffer(Exception):
    """Workers have different weights: a defect, or memory that fails; training ends."""
