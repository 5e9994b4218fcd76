"""Jobs of the native engine, whose workers are the ranks of a process group.

They meet through the process group's store: the group's first rank starts the job's scheduler in
the background of its process, and leaves its address and a fresh secret there. Where the user has
given all ranks a secret (``HIPRESS_SECRET``), that one counts, and never goes through the store.
From then on the ranks talk over the engine's own connections, which know the secret and are
encrypted between machines.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import math
import os
import secrets
import socket
from collections.abc import Mapping

import torch.distributed as dist
from torch.distributed import distributed_c10d

from hipress import addresses
from hipress._lib import check_call, lib, string_pairs
from hipress.errors import HipressError
from hipress.member import Member
from hipress.torch.executors.staging import backend

view = 0
"""The number of the elastic job's view for which this process makes jobs now; 0: there is none."""
_timelines: set[str] = set()
"""Files that this process's schedulers are to write."""
_LINGER_SECONDS = 2.0
"""Time that a process which ends keeps its scheduler for ranks that end later; 30 if there is a
timeline to be written."""


class Scheduler:
    """A job's scheduler in the background of this process.

    :param options: by the environment's names
    :raises HipressError: if it cannot listen
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        self._handle, address = ctypes.c_void_p(), ctypes.c_char_p()
        found = ctypes.byref(self._handle), ctypes.byref(address)
        check_call(lib.HipressStartScheduler(*string_pairs(dict(options)), *found), HipressError)
        self.address = address.value.decode()
        """host:port, where it listens."""
        self._pid = os.getpid()
        atexit.register(self.stop)

    def stop(self, at_once: bool = False) -> None:
        """Ends it, when all workers have left or after some seconds."""
        if os.getpid() != self._pid or not self._handle:
            return
        atexit.unregister(self.stop)
        seconds = 30.0 if os.environ.get("HIPRESS_TIMELINE") else _LINGER_SECONDS
        seconds = 0.0 if at_once else seconds
        over = ctypes.c_int()
        lib.HipressAwaitEnd(self._handle, int(1e3 * seconds), ctypes.byref(over))
        handle, self._handle = self._handle, ctypes.c_void_p()
        lib.HipressStop(handle)
        lib.HipressFree(handle)


def timeout_of(group: dist.ProcessGroup) -> float:
    """The timeout that a process group was made with, in seconds."""
    options = getattr(backend(group), "options", None)
    timeout = getattr(options, "_timeout", None) or distributed_c10d.default_pg_timeout
    return timeout.total_seconds()


def join(group: dist.ProcessGroup, name: str, timeout: float) -> tuple[Member, Scheduler | None]:
    """Makes this rank a worker of a job of the group's ranks, which all call this together.

    :param name: of the job, which no other job of the store has
    :param timeout: seconds to wait for another rank, now and in every step
    :returns: the worker, and the job's scheduler if it is in this process
    :raises HipressError: if a rank is missing, or an option in the environment is wrong
    """
    store = dist.PrefixStore(f"hipress/{name}", distributed_c10d._get_default_store())
    seconds = max(1, math.ceil(min(timeout, 86400)))
    start_seconds = max(1, math.ceil(min(seconds, timeout_of(group))))
    common = {
        "DMLC_NUM_WORKER": dist.get_world_size(group),
        "DMLC_NUM_SERVER": 0,
        "DMLC_INTERFACE": _interface(),
        "HIPRESS_TIMEOUT": seconds,
        "HIPRESS_START_TIMEOUT": start_seconds,
        "HIPRESS_RANKS": ",".join(map(str, dist.get_process_group_ranks(group))),
        "HIPRESS_JOB": name,
        "HIPRESS_VIEW": view,
    }
    rank, scheduler = dist.get_rank(group), None
    timeline = _timeline(group, name)
    if rank == 0:
        scheduler = _start_scheduler(store, {**common, "HIPRESS_TIMELINE": timeline})
    try:
        found = json.loads(store.get("scheduler"))
    except RuntimeError as error:  # it is silent, or gone, maybe with the store
        why = str(error).splitlines()[0]
        raise HipressError(f"worker 0 did not start this job: {why}") from error
    if "error" in found:
        raise HipressError(f"rank {dist.get_process_group_ranks(group)[0]}: {found['error']}")
    secret = os.environ.get("HIPRESS_SECRET") or found["secret"]
    host, _, port = found["address"].rpartition(":")
    own = {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": rank, "HIPRESS_SECRET": secret}
    if view:  # each survivor of a view that fails writes a part
        own["HIPRESS_TIMELINE"] = _beside(timeline, f"rank{rank}")
    where = {"DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port}
    return Member({**common, **own, **where}), scheduler


def _start_scheduler(store: dist.Store, common: Mapping[str, object]) -> Scheduler:
    """Starts the scheduler, and leaves its address, or what went wrong, in the store."""
    fresh = secrets.token_hex(32)
    secret = os.environ.get("HIPRESS_SECRET") or fresh
    try:
        own = {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_URI": own_host(), "DMLC_PS_ROOT_PORT": 0}
        scheduler = Scheduler({**common, **own, "HIPRESS_SECRET": secret})
    except Exception as error:  # whatever it is, the others wait for an entry
        store.set("scheduler", json.dumps({"error": str(error)}))
        raise
    store.set("scheduler", json.dumps({"address": scheduler.address, "secret": fresh}))
    return scheduler


def _timeline(group: dist.ProcessGroup, name: str) -> str:
    """The file for the timeline of a group's job: what HIPRESS_TIMELINE names is the first one's of
    all ranks; others have a part of their name in theirs. In an elastic job the views' numbers come
    first: its processes do not know what others have written."""
    path = os.environ.get("HIPRESS_TIMELINE", "")
    if view:
        path = _beside(path, f"view{view}")
    everybody = dist.get_world_size(group) == dist.get_world_size()
    if not everybody or path in _timelines:
        path = _beside(path, name[:8])
    _timelines.add(path)
    return path


def _beside(path: str, what: str) -> str:
    """ "job-what.json" of "job.json"; of no file none."""
    stem, suffix = os.path.splitext(path)
    return path and f"{stem}-{what}{suffix}"


def _interface() -> str:
    """The network interface that the user has named for us, or for Gloo."""
    named = os.environ.get("DMLC_INTERFACE") or os.environ.get("GLOO_SOCKET_IFNAME", "")
    return named.split(",")[0]


def own_host() -> str:
    """Finds the address by which other ranks reach this one."""
    if os.environ.get("DMLC_NODE_HOST"):
        return os.environ["DMLC_NODE_HOST"]
    if _interface():
        return addresses.of_interface(_interface())
    master = os.environ.get("MASTER_ADDR") or socket.gethostname()
    try:
        return addresses.towards(socket.gethostbyname(master))
    except OSError as error:
        raise ValueError(
            f"no IPv4 address is known for {master!r} ({error}), by which other ranks would find "
            "this one: set DMLC_NODE_HOST to its address, or DMLC_INTERFACE to its interface"
        ) from error
