"""Elastic training under torchrun alone, which gives its processes one store for all of them."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from hipress.base import addresses
from hipress.elastic.membership.membership_errors import ElasticError
from hipress.torch.executors.group_job import own_host

_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_jobs = itertools.count()
_stores: list[dist.Store] = []  # rank 0 may serve the store to the other ranks


def environment(timeout: float) -> Mapping[str, str]:
    """Return this process's environment, with HIPRESS_ELASTIC_* from torchrun's if not set.

    torchrun ends and starts the processes of all its nodes together. So these are always the first
    processes of a job, with new addresses and a new secret.

    Args:
        timeout: seconds to wait for the addresses of other processes

    Raises:
        ElasticError: the addresses did not arrive
    """
    given = dict(os.environ)
    if given.get("HIPRESS_ELASTIC_AGENTS") or not all(given.get(name) for name in _NAMES):
        return given
    try:
        agents, secret = _exchange(timeout)
    except (RuntimeError, ValueError, OSError) as error:
        why = str(error).splitlines()[0]
        raise ElasticError(
            f"rank {given['RANK']} could not exchange addresses over torchrun's store at "
            f"{addresses.join(given['MASTER_ADDR'], given['MASTER_PORT'])}: {why}"
        ) from error
    own = {
        "HIPRESS_ELASTIC_SLOT": given["RANK"],
        "HIPRESS_ELASTIC_AGENTS": ",".join(agents),
        "HIPRESS_ELASTIC_RESTART": "0",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    return {**given, "HIPRESS_SECRET": secret, **own}


def _exchange(timeout: float) -> tuple[list[str], str]:
    """Return the address of each rank's agent, and the job's secret: the user's, or rank 0's."""
    within = timedelta(seconds=timeout)
    store, rank, size = next(dist.rendezvous("env://", timeout=within))
    store.set_timeout(within)
    _stores.append(store)
    store = dist.PrefixStore(f"hipress/elastic/{next(_jobs)}", store)
    host = own_host()
    # This process keeps the port bound until all ranks have received it.
    with socket.socket(addresses.family_of(host)) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
        mine = {"agent": addresses.join(host, port), "token": secrets.token_hex(16)}
        store.set(f"rank/{rank}", json.dumps(mine))
        deadline = time.monotonic() + timeout
        roster = _call_the_roll(store, size, deadline) if rank == 0 else None
        while roster is None:
            roster = _answer(store, rank, mine["token"])
            _pause(deadline)
    agents = [each["agent"] for each in roster["ranks"]]
    return agents, os.environ.get("HIPRESS_SECRET") or roster["secret"]


# torchrun's store outlives the processes, so its entries may be from processes before a restart.
# Therefore rank 0 publishes a roster until each rank has found its entry there and confirmed it.


def _call_the_roll(store: dist.Store, size: int, deadline: float) -> dict[str, Any]:
    """Publish a roster as rank 0, and return it when all ranks have confirmed the same one."""
    own = os.environ.get("HIPRESS_SECRET")
    roster: dict[str, Any] = {"ranks": []}
    while True:
        ranks = [json.loads(store.get(f"rank/{rank}")) for rank in range(size)]
        if ranks != roster["ranks"]:
            secret = "" if own else secrets.token_hex(32)
            roster = {"id": secrets.token_hex(16), "ranks": ranks, "secret": secret}
            store.set("roster", json.dumps(roster))
        if all(_read(store, f"answer/{rank}") == roster["id"] for rank in range(1, size)):
            store.set("complete", roster["id"])
            return roster
        _pause(deadline)


def _answer(store: dist.Store, rank: int, token: str) -> dict[str, Any] | None:
    """Confirm the roster as another rank.

    Return it when all ranks have confirmed it, otherwise None.
    """
    roster = json.loads(_read(store, "roster") or "{}")
    if not roster or len(roster["ranks"]) <= rank or roster["ranks"][rank]["token"] != token:
        return None
    store.set(f"answer/{rank}", roster["id"])
    return roster if _read(store, "complete") == roster["id"] else None


def _read(store: dist.Store, key: str) -> str:
    return str(store.get(key).decode()) if store.check([key]) else ""


def _pause(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError("not all ranks came in time")
    time.sleep(0.02)
