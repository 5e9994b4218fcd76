"""One view of an elastic job: its process group, its job of the engine, its steps."""

from __future__ import annotations

import datetime
import json
import os
import threading
from collections.abc import Mapping, Sequence

import torch.distributed as dist

from hipress import addresses
from hipress.elastic.agent import Agent
from hipress.elastic.errors import ElasticError
from hipress.elastic.view import View
from hipress.torch import private
from hipress.torch.elastic import transfer
from hipress.torch.elastic.carried import Carried
from hipress.torch.elastic.journal import Journal
from hipress.torch.elastic.rounds import InnerOptimizer
from hipress.torch.elastic.state import State
from hipress.torch.executors import job
from hipress.torch.executors.engine import Engine, HipressError, close_all
from hipress.torch.executors.staging import backend
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the operations of the user's script on the process group."""
_MIN_SETUP_SECONDS = 2.0
"""Timeout of those that set it up, at least: a busy machine may need so long."""


class ViewChange(Exception):
    """The workers change at this step, or round: all of them have completed it."""


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
        self.optimizer: DistributedOptimizer | InnerOptimizer | None = None
        self.in_round = False
        """True while this worker makes steps of its own: they go on, whatever happens to others."""
        self._store: dist.Store | None = None
        self._groups: list[dist.ProcessGroup] = []
        self._waking = threading.Lock()
        self._interrupted = ""
        self._all_done = False
        # All have said that they are here: whoever is late then is silent, and nothing else would
        # end what the others wait for.
        seconds = max(_MIN_SETUP_SECONDS, agent.heartbeat_timeout)
        self._setup_timeout = datetime.timedelta(seconds=seconds)
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
        here = self.exchange("here", "trained" if self._has_trained() else "")
        trained = [rank for rank, text in enumerate(here) if text]
        self._make_group()
        if trained:
            self._synchronize_again(trained)
        self._copy_state(trained)
        if self.optimizer is None:
            self._connect(dist.group.WORLD)
        private.set_timeout(dist.group.WORLD, datetime.timedelta(seconds=_GROUP_SECONDS))
        self._compare(self._digest())
        self.in_round = state.rounds is not None

    def _has_trained(self) -> bool:
        """Whether this worker has steps that no result has, as their synchronisation failed. Those
        of one that is a round behind are in the result of others."""
        rounds = self._state.rounds
        return bool(rounds and rounds.completed == self.view.step and rounds.inner_steps)

    def _connect(self, group: dist.ProcessGroup) -> None:
        self.optimizer = self._state.connect(group)
        self.carried.give_to(self.optimizer.compression)
        self.optimizer.compression.begin_transaction()
        if why := self._interrupted or self._agent.ended(self.view.epoch):
            raise HipressError(why)

    def _synchronize_again(self, trained: Sequence[int]) -> None:
        """Makes a synchronisation that failed again, among the ranks that trained for it. Who joins
        has no part in the mean, and copies the result."""
        everybody = len(trained) == self.size
        group = dist.group.WORLD
        if not everybody:
            group = dist.new_group(trained, self._setup_timeout)  # on all ranks together
        if self.rank in trained:
            if not everybody:
                self._groups.append(group)
            self._connect(group)
            self._synchronize(len(trained))
        if everybody:
            return
        self.exchange("synchronised")
        if self.rank in trained:
            self.carried.take_from(self.optimizer.compression)
            self._engine.close(in_peace=True)
            self.optimizer = None

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
        here = addresses.resolve(me.host) or me.host
        os.environ.setdefault("DMLC_NODE_HOST", here)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", addresses.interface_with(here))
        timeout, first = self._setup_timeout, self.view.members[0]
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
        self._groups.append(dist.group.WORLD)

    def _copy_state(self, trained: Sequence[int]) -> None:
        """Has members that are behind copy the source's state.

        :param trained: the ranks that have made a synchronisation again: the others are behind
        """
        source = trained[0] if trained else self._ids.index(self.view.source)
        behind = [r for r, i in enumerate(self._ids) if i in self.view.behind and r != source]
        if trained:
            behind = [rank for rank in range(self.size) if rank not in trained]
        state, epoch = self._state, self.view.epoch
        if self.rank == source and behind:
            about = {"settings": state.settings(), "carried": self.carried.to_copy()}
            data = transfer.pack({**state.to_copy(), **about})
            for rank in behind:
                self._agent.share(epoch, f"copy/{rank}", str(data.numel()))
                transfer.send(data, rank)
        elif self.rank in behind:
            size = int(self._agent.fetch(epoch, f"copy/{self.rank}", state.timeout, source))
            found = transfer.unpack(transfer.receive(size, source))
            state.check(found["settings"])
            state.copy(found)
            self.carried.copy(found["carried"])
            self._journal.write("copied", epoch=epoch, step=state.step)
        # At once: if the source dies while others copy, this member has the step.
        self._agent.completed(state.completed, True, epoch)
        if behind:
            self.exchange("copied")

    # Steps.

    def applied(self) -> None:
        """Notes that the optimizer has made its step, before it is committed."""
        if self._state.rounds is None:
            self._agent.completed(self._state.step + 1, False, self.view.epoch)

    def end_step(self, figures: Mapping[str, float]) -> None:
        """Ends a step of this view.

        :raises ViewChange: if the next view begins here
        """
        rounds = self._state.rounds
        if rounds is None:
            self._go_on(self._complete("step", figures))
            return
        self._write("step", figures)
        if self._agent.view() is None:  # the others went on without this worker
            self.in_round = False
            raise ViewChange
        if self._state.step % rounds.sync_every == 0:
            self._end_round()

    def _end_round(self) -> None:
        self.in_round = False
        self._go_on(self._synchronize(self.size))
        self.in_round = True

    def _synchronize(self, trained: int) -> str | None:
        """Completes a round, as :meth:`_complete` does.

        :param trained: the number of workers that have a part in the mean
        """
        rounds = self._state.rounds
        rounds.synchronize(self.optimizer.compression)
        return self._complete("round", {"round": rounds.completed, "trained": trained})

    def _complete(self, event: str, figures: Mapping[str, float]) -> str | None:
        """Notes that this worker has completed what the workers complete together; returns a digest
        of the weights if they are to be compared."""
        state = self._state
        self.optimizer.compression.begin_transaction()  # what is committed is not put back
        self._agent.completed(state.completed, True, self.view.epoch)
        digest = self._digest() if state.completed % state.check_every == 0 else None
        self._write(event, {"digest": digest, **figures})
        return digest

    def _write(self, event: str, figures: Mapping[str, object]) -> None:
        self._journal.write(
            event, epoch=self.view.epoch, step=self._state.step, size=self.size, rank=self.rank,
            **figures,
        )  # fmt: skip

    def _go_on(self, digest: str | None) -> None:
        """Compares the members' weights, if there is a digest.

        :raises ViewChange: if the next view begins here
        """
        state = self._state
        if digest is not None:
            self._compare(digest)
        elif state.rounds is not None:
            # Whoever lacks the result could only wait while others made the next round without it.
            self.exchange(f"round {state.completed}")
        newest = self._agent.view()
        if newest is None or newest.epoch > self.view.epoch:
            if newest is not None and newest.boundary is not None:
                if state.completed < newest.boundary:
                    return
                self.exchange(f"step {state.step}")
                self._all_done = True
            raise ViewChange

    def _digest(self) -> str:
        state = self._state
        outer = state.rounds.weights() if state.rounds else []
        return transfer.digest([*state.model.named_parameters(), *outer])

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
        epoch, rounds = self.view.epoch, self._state.rounds
        if rounds is not None and rounds.inner_steps:  # the last round is shorter
            self._end_round()
        self.in_round = False
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
            _drop(self._groups)
        self._store = None
        job.view = 0


def _drop(groups: list[dist.ProcessGroup]) -> None:
    """Destroys the process groups. Their end waits for operations with members that are silent, for
    which nobody waits but the process at its exit."""
    held = [[group, backend(group)] for group in groups]
    groups.clear()
    dist.destroy_process_group()
    threading.Thread(target=held.clear, name="hipress-gloo-end").start()


class WeightsDiffer(Exception):
    """Workers have different weights: a defect, or memory that fails; training ends."""
