"""One view of an elastic job of PyTorch's: its process group, its job of the engine, its rounds."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch.distributed as dist

from hipress import addresses
from hipress.elastic_training import session
from hipress.elastic_training.session import ViewChange
from hipress.errors import HipressError as NodeError
from hipress.torch import private
from hipress.torch.elastic import torchrun, transfer
from hipress.torch.elastic.carried import Carried
from hipress.torch.elastic.rounds import InnerOptimizer
from hipress.torch.elastic.state import State
from hipress.torch.executors import job
from hipress.torch.executors.engine import HipressError, close_all
from hipress.torch.executors.staging import backend
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the operations of the user's script on the process group."""


class Session(session.Session):
    """This worker's part of one view; see :class:`hipress.elastic_training.session.Session`."""

    _state: State
    Carried = Carried
    errors = HipressError, NodeError
    environment = staticmethod(torchrun.environment)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.optimizer: DistributedOptimizer | InnerOptimizer | None = None
        self._store: dist.Store | None = None
        self._groups: list[dist.ProcessGroup] = []
        self._setup_timeout = datetime.timedelta(seconds=self._setup_seconds)
        self._trained: list[int] = []
        """The ranks that have made a synchronisation again: the others are behind."""

    # Beginning.

    def open(self) -> None:
        """See :meth:`hipress.elastic_training.session.Session.open`."""
        job.view = self.view.epoch
        super().open()
        self.in_round = self._state.rounds is not None

    def meet(self) -> None:
        """Makes the view's process group, and a synchronisation that failed again."""
        here = self.exchange("here", "trained" if self._has_trained() else "")
        self._trained = [rank for rank, text in enumerate(here) if text]
        self._make_group()
        if self._trained:
            self._synchronize_again(self._trained)

    def _has_trained(self) -> bool:
        """Whether this worker has steps that no result has, as their synchronisation failed. Those
        of one that is a round behind are in the result of others."""
        rounds = self._state.rounds
        return bool(rounds and rounds.completed == self.view.step and rounds.inner_steps)

    def connect(self) -> None:
        """Connects the workers, unless a synchronisation did."""
        if self.optimizer is None:
            self._connect(dist.group.WORLD)
        private.set_timeout(dist.group.WORLD, datetime.timedelta(seconds=_GROUP_SECONDS))

    def _connect(self, group: dist.ProcessGroup) -> None:
        self.optimizer = self._state.connect(group)
        self.begin(self.optimizer.compression)

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
            self.carried.take_from(self.compression)
            self.compression.engine.close(in_peace=True)
            self.optimizer = self.compression = None

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
            port = int(self.fetch("store", 0))
            self._store = dist.TCPStore(first.host, port, None, False, timeout=timeout)
        dist.init_process_group(
            "gloo", store=self._store, rank=self.rank, world_size=self.size, timeout=timeout
        )
        self._groups.append(dist.group.WORLD)

    def copies(self) -> tuple[int, list[int]]:
        """The rank whose state counts, and those that are behind."""
        if self._trained:
            return self._trained[0], [r for r in range(self.size) if r not in self._trained]
        return super().copies()

    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Brings a state to those that are behind, by the process group."""
        if self.rank == source:
            data = transfer.pack(what)
            for rank in behind:
                self._agent.share(self.view.epoch, f"copy/{rank}", str(data.numel()))
                transfer.send(data, rank)
        elif self.rank in behind:
            size = int(self.fetch(f"copy/{self.rank}", source))
            return transfer.unpack(transfer.receive(size, source))
        return {}

    # Steps.

    def applied(self) -> None:
        """Notes that the optimizer has made its step, before it is committed."""
        if self._state.rounds is None:
            super().applied()

    def end_step(self, figures: Mapping[str, float]) -> None:
        """Ends a step of this view.

        :raises ViewChange: if the next view begins here
        """
        rounds = self._state.rounds
        if rounds is None:
            super().end_step(figures)
            return
        rounds.inner_steps += 1
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
        rounds.synchronize(self.compression)
        return self._complete("round", {"round": rounds.completed, "trained": trained})

    def _go_on(self, digest: str | None) -> None:
        """See :meth:`hipress.elastic_training.session.Session._go_on`."""
        if digest is None and self._state.rounds is not None:
            # Whoever lacks the result could only wait while others made the next round without it.
            self.exchange(f"round {self._state.completed}")
        super()._go_on(digest)

    # Ending.

    def await_end(self) -> None:
        """Waits until all members have come to the end of training, or one knows that they have."""
        rounds = self._state.rounds
        if rounds is not None and rounds.inner_steps:  # the last round is shorter
            self._end_round()
        self.in_round = False
        super().await_end()

    def fail(self, why: str) -> None:
        """Ends what this worker waits for in the engine, if there is one."""
        if self.compression is not None:
            self.compression.engine.fail(HipressError(why), "")

    def disconnect(self, in_peace: bool) -> None:
        """Leaves the engine and the process group."""
        if self.optimizer is not None:
            self.optimizer.detach()
            self.compression.engine.close(in_peace)
        close_all()
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
