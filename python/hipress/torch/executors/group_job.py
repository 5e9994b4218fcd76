"""Jobs of the native engine whose workers are the ranks of a process group.

The ranks meet through the process group's store. The group's first rank starts the job's scheduler
in the background of its process, and writes its address and a new secret to the store. If the user
has given all ranks a secret (``HIPRESS_SECRET``), that one is used, and never written to the store.
From then on the ranks communicate over the engine's own connections, which are authenticated with
the secret and encrypted between hosts.
"""

from __future__ import annotations

import math
import os
import socket
import weakref
from dataclasses import dataclass

import torch.distributed as dist

from hipress.base import addresses
from hipress.errors import HipressError
from hipress.runtime import scheduler
from hipress.runtime.member import JobMember
from hipress.runtime.scheduler import Scheduler, sibling_path
from hipress.torch import private

_views: weakref.WeakKeyDictionary[dist.ProcessGroup, ElasticView] = weakref.WeakKeyDictionary()
"""View of each process group that :func:`assign_view` has been called with."""
_timelines: set[str] = set()
"""Files that this process's schedulers will write."""


@dataclass(frozen=True)
class ElasticView:
    """View of an elastic job, as far as the jobs of its process groups depend on it.

    Attributes:
        number: Number of the view, from 1 up.
        identity: Unique text of the view. A process of another view cannot join its jobs.
        host: Address at which this process listens.
    """

    number: int
    identity: str
    host: str


_NO_VIEW = ElasticView(0, "", "")


def assign_view(group: dist.ProcessGroup, view: ElasticView) -> None:
    """Assign a view of an elastic job to a process group, for its later jobs."""
    _views[group] = view


def join(group: dist.ProcessGroup, name: str, timeout: float) -> tuple[JobMember, Scheduler | None]:
    """Make this rank a worker of a job of the group's ranks, which all call this together.

    Return the worker, and the job's scheduler if it is in this process. ``timeout`` is the time to
    wait for another rank, now and in every step, in seconds.
    """
    store = dist.PrefixStore(f"hipress/{name}", private.default_store())
    seconds = max(1, math.ceil(min(timeout, 86400)))
    start_seconds = max(1, math.ceil(min(seconds, private.timeout_of(group))))
    view = _views.get(group, _NO_VIEW)
    common: dict[str, object] = {
        "DMLC_NUM_WORKER": dist.get_world_size(group),
        "DMLC_NUM_SERVER": 0,
        "DMLC_INTERFACE": named_interface(),
        "HIPRESS_TIMEOUT": seconds,
        "HIPRESS_START_TIMEOUT": start_seconds,
        "HIPRESS_RANKS": ",".join(map(str, dist.get_process_group_ranks(group))),
        "HIPRESS_JOB": name,
    }
    if view.host:
        common["DMLC_NODE_HOST"] = view.host

    def get() -> str:
        try:
            return store.get("scheduler")
        except RuntimeError as error:  # it is silent or has ended, maybe with the store
            why = str(error).splitlines()[0]
            first = dist.get_process_group_ranks(group)[0]
            raise HipressError(f"rank {first} did not start this job: {why}") from error

    return scheduler.join(
        dist.get_rank(group),
        common,
        lambda: view.host or own_host(),
        lambda text: store.set("scheduler", text),
        get,
        _timeline(group, name, view.number),
        view.number,
        view.identity and f"{view.identity}/{name}",
    )


def _timeline(group: dist.ProcessGroup, name: str, view: int) -> str:
    """Return the file for the timeline of a group's job, or an empty string.

    The first job of all ranks writes the file that HIPRESS_TIMELINE names. For other jobs a part of
    their name is added. In an elastic job the view's number is added first, because its processes
    do not know which files others have written.
    """
    path = os.environ.get("HIPRESS_TIMELINE", "")
    if view:
        path = sibling_path(path, f"view{view}")
    all_ranks = dist.get_world_size(group) == dist.get_world_size()
    if not all_ranks or path in _timelines:
        path = sibling_path(path, name[:8])
    _timelines.add(path)
    return path


def named_interface() -> str:
    """Return the network interface that the user has named for HiPress, or for Gloo."""
    named = os.environ.get("DMLC_INTERFACE") or os.environ.get("GLOO_SOCKET_IFNAME", "")
    return named.split(",")[0]


def own_host() -> str:
    """Return the address at which other ranks reach this one."""
    if os.environ.get("DMLC_NODE_HOST"):
        return addresses.without_brackets(os.environ["DMLC_NODE_HOST"])
    master = os.environ.get("MASTER_ADDR") or socket.gethostname()
    if named_interface():
        return addresses.of_interface(named_interface(), addresses.family_of(master))
    address = addresses.resolve(master)
    if address is None:
        raise ValueError(
            f"no address is known for {master!r}, by which other ranks would find this one: set "
            "DMLC_NODE_HOST to its address, or DMLC_INTERFACE to its interface"
        )
    found = addresses.towards(address)
    if addresses.is_loopback(found) and master not in (*addresses.LOCAL_NAMES, address):
        return addresses.of_this_machine()  # its own name means loopback, as Debian writes it
    return found
