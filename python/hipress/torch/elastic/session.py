"""One view of an elastic job in PyTorch: its process group, and its job of the native engine."""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch.distributed as dist

from hipress.base import addresses
from hipress.elastic.training.outer_step_session import OuterStepSession
from hipress.errors import HipressError as NodeError
from hipress.torch import private
from hipress.torch.authentication import authenticate
from hipress.torch.elastic import torchrun, transfer
from hipress.torch.elastic.carried import Carried
from hipress.torch.elastic.outer_steps import InnerOptimizer
from hipress.torch.elastic.state import State
from hipress.torch.elastic.tuned import ViewSynchronizer
from hipress.torch.errors import is_process_group_error
from hipress.torch.executors import job
from hipress.torch.executors.engine import HipressError, close_all
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the user script's operations on the process group, in seconds."""


class Session(OuterStepSession):
    """Part of this worker in one view."""

    _state: State
    Carried = Carried
    errors = HipressError, NodeError
    environment = staticmethod(torchrun.environment)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.optimizer: DistributedOptimizer | InnerOptimizer | None = None
        self._store: dist.Store | None = None
        self._host = ""  # address at which this process's engine listens
        self._groups: list[dist.ProcessGroup] = []
        self._environment = contextlib.ExitStack()  # restores it when the view ends
        self._setup_timeout = datetime.timedelta(seconds=self._setup_seconds)

    def is_of_others(self, error: Exception) -> bool:
        """Return whether an error may come from an operation on the process group."""
        return is_process_group_error(error)

    # Beginning.

    def connect(self) -> None:
        """Connect the workers, unless a synchronization has connected them."""
        super().connect()
        private.set_timeout(dist.group.WORLD, datetime.timedelta(seconds=_GROUP_SECONDS))

    def connect_ranks(self, ranks: Sequence[int]) -> None:
        """Call :meth:`begin` on these ranks with a new compression of these ranks."""
        group = dist.group.WORLD
        if len(ranks) < self.size:
            group = dist.new_group(list(ranks), self._setup_timeout)  # on all ranks together
        if self.rank in ranks:
            view = job.ElasticView(self.view.epoch, self.view.identity, self._host)
            job.assign_view(group, view)
            if group is not dist.group.WORLD:
                self._groups.append(group)
            self.optimizer = self._state.connect(group)
            compression = self.optimizer.compression
            if isinstance(compression, ViewSynchronizer):
                compression.known = self.known_choice(ranks)
            self.begin(compression)
            if isinstance(self.optimizer, DistributedOptimizer):
                self.optimizer.prepare()

    def leave_ranks(self) -> None:
        """Close, on the connected ranks, what :meth:`connect_ranks` made, without a failure."""
        self.compression.engine.close(in_peace=True)
        self.optimizer = None

    def gather(self) -> None:
        """Create the view's process group.

        Gloo finds its network interface in GLOO_SOCKET_IFNAME only. If the user has not set that
        variable, it names the interface with the agent's address until the view ends.
        """
        here = self._agent.address
        # The host file's addresses, which agents have, may be on another network than training.
        named = job.named_interface()
        self._host = os.environ.get("DMLC_NODE_HOST", "") or here
        if named and not os.environ.get("DMLC_NODE_HOST"):
            self._host = addresses.of_interface(named, addresses.family_of(here))
        self._host = addresses.without_brackets(self._host)
        if "GLOO_SOCKET_IFNAME" not in os.environ:
            os.environ["GLOO_SOCKET_IFNAME"] = named or addresses.interface_with(here)
            self._environment.callback(os.environ.pop, "GLOO_SOCKET_IFNAME", None)
        timeout, first = self._setup_timeout, self.view.members[0]
        if self.rank == 0:
            self._store = _store_on(here, timeout)
            self._agent.share(self.view.epoch, "store", str(self._store.port))
        else:
            port = int(self.fetch("store", 0))
            host = first.host
            if _is_loopback(host) and not _is_loopback(here):
                host = here  # rank 0 is on this machine, and its store listens at this address only
            self._store = dist.TCPStore(host, port, None, False, timeout=timeout)
        # A process of another view may connect to a reused port.
        store = dist.PrefixStore(self.view.identity, self._store)
        dist.init_process_group(
            "gloo", store=store, rank=self.rank, world_size=self.size, timeout=timeout
        )
        self._groups.append(dist.group.WORLD)
        authenticate(dist.group.WORLD, self._setup_seconds)

    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy a state to each rank that is behind, in turn, over the process group."""
        found: Mapping[str, Any] = {}
        data = transfer.pack(what) if self.rank == source else None
        if self.rank == source:
            self._agent.share(self.view.epoch, "copy", str(data.numel()))
        size = int(self.fetch("copy", source)) if data is None else data.numel()
        for rank in behind:
            if self.rank == source:
                transfer.send(data, rank)
            if self.rank == rank:
                found = transfer.unpack(transfer.receive(size, source, self.has_copied))
            else:
                self.await_copy(rank, transfer.reports(size))
        return found

    # Ending.

    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""
        if self.compression is not None:
            self.compression.engine.fail(HipressError(why), "")

    def disconnect(self, in_peace: bool) -> None:
        """Leave the engine and the process group."""
        if self.optimizer is not None:
            self.optimizer.detach()
            # Not self.compression: a view may end while the choice of type "auto" is passed on.
            self.optimizer.compression.engine.close(in_peace)
        close_all()
        if dist.is_initialized():
            _drop(self._groups)
        self._store = None
        self._environment.close()


def _is_loopback(host: str) -> bool:
    address = addresses.resolve(host)
    return address is not None and addresses.is_loopback(address)


def _store_on(address: str, timeout: datetime.timedelta) -> dist.TCPStore:
    """Start a store that listens on one address only; by default it listens on all interfaces."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((address, 0))
        listener.listen(socket.SOMAXCONN)
        port = listener.getsockname()[1]
        store = dist.TCPStore(
            address,
            port,
            None,
            True,
            timeout=timeout,
            wait_for_workers=False,
            # PyTorch 2.6 with libuv does not accept a socket that already listens.
            master_listen_fd=listener.fileno(),
            use_libuv=False,
        )
        listener.detach()  # the store closes it
        return store


def _drop(groups: list[dist.ProcessGroup]) -> None:
    """Destroy the process groups.

    Destruction waits for operations with silent members. Only the exit of the process waits for it.
    """
    held = [[group, private.backend(group)] for group in groups]
    groups.clear()
    dist.destroy_process_group()
    threading.Thread(target=held.clear, name="hipress-gloo-end").start()
