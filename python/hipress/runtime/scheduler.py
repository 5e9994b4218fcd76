"""Jobs whose workers know each other already: the first one has the scheduler in its process."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping

from hipress.base import addresses
from hipress.errors import HipressError
from hipress.native.library import call, lib, string_pairs
from hipress.runtime.member import Member, worker_name

_LINGER_SECONDS = 2.0
"""Time that a process which ends keeps its scheduler for ranks that end later; 30 if there is a
timeline to be written."""


class Scheduler:
    """A job's scheduler in the background of this process.

    :param options: by the environment's names
    :raises HipressError: if it cannot listen
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        pairs = string_pairs(dict(options))
        handle, self.address = call(lib.HipressStartScheduler, *pairs, kind=HipressError)
        """host:port, where it listens."""
        self._handle, self._pid = ctypes.c_void_p(handle), os.getpid()
        self._elastic = bool(options.get("HIPRESS_VIEW"))
        atexit.register(self.stop)

    def stop(self, at_once: bool = False) -> None:
        """End it, when all workers have left or after some seconds."""
        if os.getpid() != self._pid or not self._handle:
            return
        atexit.unregister(self.stop)
        seconds = 30.0 if os.environ.get("HIPRESS_TIMELINE") else _LINGER_SECONDS
        seconds = 0.0 if at_once else seconds
        handle, self._handle = self._handle, ctypes.c_void_p()
        try:
            call(lib.HipressAwaitEnd, handle, int(1e3 * seconds))
            # Workers answer a goodbye, unless they are silent.
            leave = lib.HipressAbort if at_once and self._elastic else lib.HipressStop
            call(leave, handle, kind=HipressError)
        except BaseException:  # a signal handler's, such as KeyboardInterrupt
            lib.HipressAbort(handle)
            raise
        finally:
            lib.HipressFree(handle)


def join(
    rank: int,
    common: Mapping[str, object],
    host: Callable[[], str],
    put: Callable[[str], None],
    get: Callable[[], str],
    timeline: str,
    view: int = 0,
    identity: str = "",
) -> tuple[Member, Scheduler | None]:
    """Make this process a worker of a job whose members all call this together.

    :param common: options of all members, by the environment's names
    :param host: finds the address by which others reach this process; called on rank 0
    :param put: leaves a text of rank 0 for the others
    :param get: waits for it
    :param timeline: the file for the job's timeline; empty: none
    :param view: of an elastic job, in which each survivor of a view that fails writes a part
    :param identity: of that view and this job; only processes that have the same get a seat
    :returns: the worker, and the job's scheduler if it is in this process
    :raises HipressError: if a rank is missing, or an option in the environment is wrong
    """
    common, scheduler = {**common, "HIPRESS_VIEW": view}, None
    if rank == 0:
        scheduler = _start({**common, "HIPRESS_TIMELINE": timeline}, host, put, identity)
    found = json.loads(get())
    if "error" in found:
        raise HipressError(f"{worker_name(0, common.get('HIPRESS_RANKS', ''))}: {found['error']}")
    secret = os.environ.get("HIPRESS_SECRET") or found["secret"]
    address, port = addresses.split(found["address"])
    secret = derived_secret(secret, identity)
    own = {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": rank, "HIPRESS_SECRET": secret}
    if view:
        own["HIPRESS_TIMELINE"] = beside(timeline, f"rank{rank}")
    where = {"DMLC_PS_ROOT_URI": address, "DMLC_PS_ROOT_PORT": port}
    return Member({**common, **own, **where}), scheduler


def _start(
    common: Mapping[str, object],
    host: Callable[[], str],
    put: Callable[[str], None],
    identity: str,
) -> Scheduler:
    """Start the scheduler, and leave its address, or what went wrong."""
    fresh = secrets.token_hex(32)
    secret = os.environ.get("HIPRESS_SECRET") or fresh
    try:
        own = {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_URI": host(), "DMLC_PS_ROOT_PORT": 0}
        secret = derived_secret(secret, identity)
        scheduler = Scheduler({**common, **own, "HIPRESS_SECRET": secret})
    except Exception as error:  # whatever it is, the others wait for an entry
        put(json.dumps({"error": str(error)}))
        raise
    put(json.dumps({"address": scheduler.address, "secret": fresh}))
    return scheduler


def derived_secret(secret: str, identity: str) -> str:
    """Return the secret of one job of several that have a common secret.

    The handshake proves that both sides have the job's secret. So a process of another view that
    connects to a reused port cannot join.

    Args:
        identity: Identity of the job. Empty: the job's secret is the common secret.
    """
    if not identity:
        return secret
    text = b"hipress job " + identity.encode()
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def beside(path: str, what: str) -> str:
    """ "job-what.json" of "job.json"; of no file none."""
    stem, suffix = os.path.splitext(path)
    return path and f"{stem}-{what}{suffix}"
