"""One view of an elastic job: its process group, its job of the engine, its steps."""

from __future__ import annotations

import datetime
import json
import os
import threading
from collections.abc import Mapping

import torch.distributed as dist

from hipress import addresses
from hipress.elastic.agent import Agent
from hipress.elastic.errors import ElasticError
from hipress.elastic.view import View
from hipress.torch.elastic import transfer
from hipress.torch.elastic.carried import Carried
from hipress.torch.elastic.journal import Journal
from hipress.torch.elastic.state import State
from hipress.torch.executors import job
from hipress.torch.executors.engine import Engine, HipressError, close_all
from hipress.torch.executors.staging import backend
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the process group's operations. Whoever takes part has said that it is there."""


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
        self._all_done = False
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
        job.view = self.view.epoch
        self.exchange("here")
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

    def exchange(self, what: str, value: str = "") -> list[str]:
        """Gives all members a short text of each, by rank, when all have come to this point. Unlike
        operations of the process group this ends when a member dies, and may take as long as a slow
        step does.

        :param what: names the point; each time another one
        """
        epoch, agent = self.view.epoch, self._agent
        agent.share(epoch, f"{what}/{self.rank}", value)
        return [
            value if rank == self.rank
            else agent.fetch(epoch, f"{what}/{rank}", self._state.timeout, rank)
            for rank in range(self.size)
        ]  # fmt: skip

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
            port = int(self._agent.fetch(self.view.epoch, "store", self._state.timeout, 0))
            self._store = dist.TCPStore(first.host, port, None, False, timeout=timeout)
        dist.init_process_group(
            "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=timeout
        )

    def _copy_state(self) -> None:
        """Has members that are behind copy the source's state."""
        source = self._ids.index(self.view.source)
        behind = [r for r, i in enumerate(self._ids) if i in self.view.behind and r != source]
        state, epoch = self._state, self.view.epoch
        if self.rank == source and behind:
            about = {"settings": state.settings(), "carried": self.carried.to_copy()}
            data = transfer.pack({**state.state_dict(), **about})
            for rank in behind:
                self._agent.share(epoch, f"copy/{rank}", str(data.numel()))
                transfer.send(data, rank)
        elif self.rank in behind:
            size = int(self._agent.fetch(epoch, f"copy/{self.rank}", state.timeout, source))
            found = transfer.unpack(transfer.receive(size, source))
            state.check(found["settings"])
            state.load_state_dict(found)
            self.carried.copy(found["carried"])
            self._journal.write("copied", epoch=epoch, step=state.step)
        # At once: if the source dies while others copy, this member has the step.
        self._agent.completed(state.step, True, epoch)
        if behind:
            self.exchange("copied")

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
                self.exchange(f"step {state.step}")
                self._all_done = True
            raise ViewChange

    def _digest(self) -> str:
        return transfer.digest(self._state.model.named_parameters())

    def _compare(self, digest: str) -> None:
        """Compares the members' weights, and exchanges the norms of their residuals.

        :raises WeightsDiffer: on all members
        """
        step = self._state.step
        mine = json.dumps([digest, step, self.carried.norm(self.optimizer)])
        found = [json.loads(each) for each in self.exchange(f"weights after step {step}", mine)]
        for rank, theirs in enumerate(found):
            if theirs[:2] != found[0][:2]:
                raise WeightsDiffer(
                    f"the weights of ranks 0 and {rank} differ: digest {found[0][0]} after step "
                    f"{found[0][1]} and {theirs[0]} after step {theirs[1]}"
                )
        self.norms = {member: theirs[2] for member, theirs in zip(self._ids, found)}

    # Ending.

    def await_end(self) -> None:
        """Waits until all members have come to the end of training, or one knows that they have."""
        epoch = self.view.epoch
        try:
            self.exchange("end")
        except ElasticError:  # one that left since, perhaps
            self._agent.fetch(epoch, "over", 0.0)
        self._agent.share(epoch, "over", "1")
        self._all_done = True

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
            # Where nobody waits for anything any more, nobody need take this for a death.
            self._engine.close(in_peace=self._all_done)
        close_all()
        for parameter in self._state.model.parameters():
            parameter.grad = None
        if dist.is_initialized():
            _drop_group()
        self._store = None
        job.view = 0


def _drop_group() -> None:
    """Destroys the default process group. Its end waits for operations with members that are
    silent, for which nobody waits but the process at its exit."""
    held = [dist.group.WORLD, backend(dist.group.WORLD)]
    dist.destroy_process_group()
    threading.Thread(target=held.clear, name="hipress-gloo-end").start()


class WeightsDiffer(Exception):
    """Workers have different weights: a defect, or memory that fails; training ends."""
