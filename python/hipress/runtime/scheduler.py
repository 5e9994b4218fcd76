"""Jobs whose workers already know each other, with the scheduler in the first one's process."""

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
from hipress.runtime.member import JobMember, worker_name

_LINGER_SECONDS = 2.0
"""Seconds for which an ending process keeps its scheduler for ranks that end later. It is 30 if a
timeline must be written."""


class Scheduler:
    """Scheduler of a job, in the background of this process."""

    def __init__(self, options: Mapping[str, object]) -> None:
        pairs = string_pairs(dict(options))
        handle, self.address = call(lib.HipressStartScheduler, *pairs, kind=HipressError)
        """Address host:port at which it listens."""
        self._handle, self._pid = ctypes.c_void_p(handle), os.getpid()
        self._elastic = bool(options.get("HIPRESS_VIEW"))
        atexit.register(self.stop)

    def stop(self, at_once: bool = False) -> None:
        """End the scheduler when all workers have left, or after some seconds."""
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
) -> tuple[JobMember, Scheduler | None]:
    """Make this process a worker of a job whose members all call this together.

    Rank 0 publishes the scheduler's address with ``put``, and all ranks wait for it with ``get``.
    ``host`` finds the address by which other processes reach rank 0. Only processes with the same
    ``identity`` can join. After a failure in an elastic job's ``view`` each survivor writes a part
    of the ``timeline``. Return the worker, and the job's scheduler if it is in this process.
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
        own["HIPRESS_TIMELINE"] = sibling_path(timeline, f"rank{rank}")
    where = {"DMLC_PS_ROOT_URI": address, "DMLC_PS_ROOT_PORT": port}
    return JobMember({**common, **own, **where}), scheduler


def _start(
    common: Mapping[str, object],
    host: Callable[[], str],
    put: Callable[[str], None],
    identity: str,
) -> Scheduler:
    """Start the scheduler and publish its address, or its error."""
    fresh = secrets.token_hex(32)
    secret = os.environ.get("HIPRESS_SECRET") or fresh
    try:
        own = {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_URI": host(), "DMLC_PS_ROOT_PORT": 0}
        secret = derived_secret(secret, identity)
        scheduler = Scheduler({**common, **own, "HIPRESS_SECRET": secret})
    except Exception as error:  # whatever the error, the other ranks wait for an entry
        put(json.dumps({"error": str(error)}))
        raise
    put(json.dumps({"address": scheduler.address, "secret": fresh}))
    return scheduler


def derived_secret(secret: str, identity: str) -> str:
    """Return the secret of one job of several that have a common secret.

    The handshake proves that both sides have the job's secret. So a process of another view that
    connects to a reused port cannot join.
    """
    if not identity:
        return secret
    text = b"hipress job " + identity.encode()
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def sibling_path(path: str, what: str) -> str:
    """Return "job-what.json" for the path "job.json", and "" for no path."""
    stem, suffix = os.path.splitext(path)
    return path and f"{stem}-{what}{suffix}"
