"""PyTorch's part of one view: its process group, its job of the native engine, copies of state."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from hipress.base import addresses
from hipress.elastic.training.adapter import FrameworkAdapter
from hipress.errors import HipressError
from hipress.torch import private
from hipress.torch.authentication import authenticate
from hipress.torch.elastic import torchrun
from hipress.torch.elastic.compression import (
    InnerOptimizer,
    ViewGradients,
    ViewPseudoGradients,
    ViewSynchronizer,
)
from hipress.torch.elastic.state import State
from hipress.torch.errors import is_process_group_error
from hipress.torch.executors import group_job
from hipress.torch.executors.engine import close_all
from hipress.torch.integrations.optimizer import DistributedOptimizer

_GROUP_SECONDS = 10.0
"""Timeout of the user script's operations on the process group, in seconds."""
_PART = 1 << 20
"""Bytes of a message of a copy. Each has the process group's timeout, also on a slow link."""
_REPORTED_PARTS, _MAX_REPORTS = 16, 50
"""Messages for which there is one report of a copy's progress, and the most reports of a copy."""


class TorchAdapter(FrameworkAdapter):
    """See :class:`hipress.elastic.training.adapter.FrameworkAdapter`."""

    state: State
    environment = staticmethod(torchrun.environment)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.optimizer: DistributedOptimizer | InnerOptimizer | None = None
        self._store: dist.Store | None = None
        self._host = ""  # address at which this process's engine listens
        self._groups: list[dist.ProcessGroup] = []
        self._environment = contextlib.ExitStack()  # restores it when the view ends
        self._setup_timeout = datetime.timedelta(seconds=self.members.setup_seconds)

    def involves_other_workers(self, error: Exception) -> bool:
        """Return whether an error may come from an operation on the process group."""
        return is_process_group_error(error)

    def open(self) -> None:
        """Create the view's process group.

        Gloo finds its network interface in GLOO_SOCKET_IFNAME only. If the user has not set that
        variable, it names the interface with the agent's address until the view ends.
        """
        members, timeout = self.members, self._setup_timeout
        here = members.agent.address
        # The host file's addresses, which agents have, may be on another network than training.
        named = group_job.named_interface()
        self._host = os.environ.get("DMLC_NODE_HOST", "") or here
        if named and not os.environ.get("DMLC_NODE_HOST"):
            self._host = addresses.of_interface(named, addresses.family_of(here))
        self._host = addresses.without_brackets(self._host)
        if "GLOO_SOCKET_IFNAME" not in os.environ:
            os.environ["GLOO_SOCKET_IFNAME"] = named or addresses.interface_with(here)
            self._environment.callback(os.environ.pop, "GLOO_SOCKET_IFNAME", None)
        if members.rank == 0:
            self._store = _store_on(here, timeout)
            members.share("store", str(self._store.port))
        else:
            port = int(members.fetch("store", 0))
            host = members.view.members[0].host
            if _is_loopback(host) and not _is_loopback(here):
                host = here  # rank 0 is on this machine, and its store listens at this address only
            self._store = dist.TCPStore(host, port, None, False, timeout=timeout)
        # A process of another view may connect to a reused port.
        store = dist.PrefixStore(members.view.identity, self._store)
        dist.init_process_group(
            "gloo", store=store, rank=members.rank, world_size=members.size, timeout=timeout
        )
        self._groups.append(dist.group.WORLD)
        authenticate(dist.group.WORLD, members.setup_seconds)

    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy a state to each rank that is behind, in turn, over the process group."""
        members, copied = self.members, {}
        data = _pack(what) if members.rank == source else None
        if data is not None:
            members.share("copy", str(data.numel()))
        size = int(members.fetch("copy", source)) if data is None else data.numel()
        num_parts = -(-size // _PART)
        every = max(_REPORTED_PARTS, -(-num_parts // _MAX_REPORTS))
        for rank in behind:
            if data is not None:
                for part in data.split(_PART):
                    dist.send(part, rank)
            if members.rank == rank:
                received = torch.empty(size, dtype=torch.uint8, device="cpu")
                for number, part in enumerate(received.split(_PART)):
                    dist.recv(part, source)
                    if (number + 1) % every == 0 or number + 1 == num_parts:
                        members.report_copied(number // every)
                copied = _unpack(received)
            else:
                members.await_copy(rank, -(-num_parts // every))
        return copied

    def connect(
        self, ranks: Sequence[int], known_choice: Callable[[], Mapping[str, Any] | None]
    ) -> ViewSynchronizer | None:
        """Return the compression of a new optimizer of these ranks."""
        members, group = self.members, dist.group.WORLD
        if len(ranks) < members.size:
            group = dist.new_group(list(ranks), self._setup_timeout)  # on all ranks together
        if members.rank not in ranks:
            return None
        view = group_job.ElasticView(members.view.epoch, members.view.identity, self._host)
        group_job.assign_view(group, view)
        if group is not dist.group.WORLD:
            self._groups.append(group)
        self.optimizer = self.state.connect(group)
        compression = self.optimizer.compression
        if isinstance(compression, (ViewGradients, ViewPseudoGradients)):
            compression.known = known_choice()
        return compression

    def prepare(self, ranks: Sequence[int]) -> None:
        """Create the keys, and set the timeout of the script's own operations."""
        if isinstance(self.optimizer, DistributedOptimizer):
            self.optimizer.prepare()
        if len(ranks) == self.members.size:
            private.set_timeout(dist.group.WORLD, datetime.timedelta(seconds=_GROUP_SECONDS))

    def disconnect(self) -> None:
        """Close the engine without a failure."""
        self.optimizer.compression.engine.close(without_failure=True)
        self.optimizer = None

    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""
        if self.optimizer is not None:
            self.optimizer.compression.engine.fail(HipressError(why), "")

    def close(self, without_failure: bool) -> None:
        """Leave the engine and the process group."""
        if self.optimizer is not None:
            self.optimizer.detach()
            self.optimizer.compression.engine.close(without_failure)
        close_all()
        if dist.is_initialized():
            _drop(self._groups)
        self._store = None
        self._environment.close()


def _pack(state: Mapping[str, Any]) -> torch.Tensor:
    """Serialize tensors, numbers, texts and containers of them: uint8, in host memory."""
    stream = io.BytesIO()
    torch.save(dict(state), stream)
    return torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8)


def _unpack(data: torch.Tensor) -> dict[str, Any]:
    """Read what :func:`_pack` made; nothing in it can run code."""
    return torch.load(io.BytesIO(data.numpy().tobytes()), map_location="cpu", weights_only=True)


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
