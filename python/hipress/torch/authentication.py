"""Proof that all ranks of a process group know the job's secret (``HIPRESS_SECRET``).

PyTorch connects a rank with every process that reaches its store and names the rank's number.
Therefore each rank writes a nonce to the store before HiPress exchanges any data in a group. Then
it writes an HMAC of all nonces, the group's ranks and its own rank, keyed with the secret. A
process without the secret cannot compute it. The proof also yields a key with which later values of
:mod:`hipress.torch.exchange` are sealed. Operations of PyTorch itself are not protected.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import math
import os
import secrets
import time
import weakref
from collections.abc import Sequence

import torch.distributed as dist

from hipress.errors import HipressError
from hipress.torch import private

MIN_SECRET_CHARACTERS = 16
"""Least length of a secret, as in src/membership/job_options.cc."""
TAG_BYTES = hashlib.sha256().digest_size
_NONE, _SHORT = "none", "short"
"""Texts that a rank writes instead of a nonce if its secret is missing or too short."""
_LINGER_SECONDS = 5.0
"""Maximum seconds that a rank waits before an error until other ranks have detected the failure.

The rank's process may serve the store.
"""


class Authenticated:
    """Group whose ranks have proved that they have the secret, or without a secret (no ``key``)."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._count = 0

    def next(self) -> None:
        """Start another exchange, in which values of earlier exchanges are not valid."""
        self._count += 1

    def seal(self, rank: int, body: bytes) -> bytes:
        """Return the tag of a value that a rank of the group sends in this exchange."""
        if not self._key:
            return b""
        about = f"{self._count}|{rank}|".encode()
        return hmac.digest(self._key, about + body, hashlib.sha256)

    def open(self, rank: int, sealed: bytes) -> bytes | None:
        """Return the value before its tag, or None if the tag is wrong."""
        if not self._key:
            return sealed
        body, tag = sealed[:-TAG_BYTES], sealed[-TAG_BYTES:]
        return body if hmac.compare_digest(tag, self.seal(rank, body)) else None


_groups: weakref.WeakKeyDictionary[dist.ProcessGroup, Authenticated] = weakref.WeakKeyDictionary()


def authenticate(group: dist.ProcessGroup | None = None, timeout: float = 0.0) -> Authenticated:
    """Make the ranks of a group prove once that they have the secret.

    All ranks call this together. If no rank has a secret, nothing is proved. If a rank lacks the
    secret, all ranks raise an error that names it.
    """
    group = group or dist.group.WORLD
    known = _groups.get(group)
    if known is None:
        ranks = dist.get_process_group_ranks(group)
        timeout = timeout or private.timeout_of(group)
        known = _prove(ranks, timeout) if len(ranks) > 1 else Authenticated()
        _groups[group] = known
    return known


def _prove(ranks: Sequence[int], timeout: float) -> Authenticated:
    """Exchange nonces and proofs through the store; see :func:`authenticate`."""
    mine = dist.get_rank()
    secret = os.environ.get("HIPRESS_SECRET", "").encode()
    notes = GroupNotes("proof", ranks, timeout)
    nonce = secrets.token_hex(32)
    if not secret:
        nonce = _NONE
    elif len(secret) < MIN_SECRET_CHARACTERS:
        nonce = _SHORT
    nonces = notes.exchange("nonce", nonce, bool(secret))
    if nonces[mine] != nonce:
        # Otherwise a writer to the store could replay an earlier proof, or switch it off.
        raise notes.failure(
            "another process changed in the store what this rank had left there to prove that it "
            "knows this job's secret: nothing was exchanged"
        )
    short = [rank for rank, text in nonces.items() if text == _SHORT]
    if short:
        raise notes.failure(
            f"HIPRESS_SECRET of rank {short[0]} has fewer than {MIN_SECRET_CHARACTERS} characters: "
            "`openssl rand -hex 32` makes one"
        )
    without = [rank for rank, text in nonces.items() if text == _NONE]
    if len(without) == len(ranks):  # this rank also
        return Authenticated()
    if without:
        with_secret = next(rank for rank in ranks if rank not in without)
        raise notes.failure(
            f"rank {without[0]} has no HIPRESS_SECRET, and rank {with_secret} has one: set the "
            "same one for all ranks, or none"
        )
    about = "|".join(["hipress ranks 1", str(list(ranks)), *(nonces[rank] for rank in ranks)])
    key = hmac.digest(secret, about.encode(), hashlib.sha256)

    def proof(rank: int) -> str:
        return hmac.new(key, f"rank {rank}".encode(), hashlib.sha256).hexdigest()

    proofs = notes.exchange("proof", proof(mine), True)
    wrong = [
        rank
        for rank, text in proofs.items()
        if not hmac.compare_digest(text.encode(), proof(rank).encode())
    ]
    if wrong:
        raise notes.failure(
            f"rank {wrong[0]} could not prove that it knows this job's secret: it has another "
            "HIPRESS_SECRET than this rank, or is a process of another job; nothing was exchanged "
            "with it",
            wrong,
        )
    return Authenticated(hmac.digest(key, b"values", hashlib.sha256))


class GroupNotes:
    """Texts that the ranks of a group share in the store, before they use the group itself."""

    def __init__(self, purpose: str, ranks: Sequence[int], timeout: float) -> None:
        self._ranks, self._mine = list(ranks), dist.get_rank()
        self._timeout, self._deadline = timeout, time.monotonic() + timeout
        about = f"hipress/{purpose}/{hashlib.sha256(str(self._ranks).encode()).hexdigest()[:16]}"
        store = private.default_store()
        # The store counts, because groups may have the same ranks, and a rank that joins later has
        # another history.
        number = store.add(f"{about}/count/{self._mine}", 1)
        self._store = dist.PrefixStore(f"{about}/{number}", store)

    def share(self, name: str, text: str) -> None:
        """Share a text with the other ranks."""
        self._store.set(f"{name}/{self._mine}", text)

    def late(self, name: str, seconds: float = math.inf, absent: Sequence[int] = ()) -> list[int]:
        """Wait for the texts of all ranks except absent ones, and return ranks without a text."""
        ranks = [rank for rank in self._ranks if rank not in absent]
        keys = [f"{name}/{rank}" for rank in ranks]
        left = max(min(self._deadline - time.monotonic(), seconds), 0.001)
        try:
            self._store.wait(keys, datetime.timedelta(seconds=left))
            return []
        except RuntimeError:  # not in this time, or the store has ended
            return [rank for rank, key in zip(ranks, keys) if not self._has(key)]

    def _has(self, key: str) -> bool:
        try:
            return self._store.check([key])
        except RuntimeError:
            return False

    def exchange(self, name: str, text: str, has_secret: bool) -> dict[int, str]:
        """Share a text, and return the texts of all ranks."""
        self.share(name, text)
        late = self.late(name)
        if late:
            what = "to prove that it knows this job's secret (HIPRESS_SECRET)"
            raise self.failure(
                f"waited {self._timeout:g} s for rank {late[0]} "
                f"{what if has_secret else 'to take part'}: it may be a process of another job, "
                "or a rank that has failed",
                late,
            )
        texts = self._store.multi_get([f"{name}/{rank}" for rank in self._ranks])
        return {rank: text.decode("utf-8", "replace") for rank, text in zip(self._ranks, texts)}

    def failure(self, sentence: str, absent: Sequence[int] = ()) -> HipressError:
        """Return an error after other ranks, except absent ones, have also detected the failure."""
        with contextlib.suppress(RuntimeError):  # the store may have ended
            self.share("failed", "")
        self._deadline = time.monotonic() + _LINGER_SECONDS
        self.late("failed", absent=absent)
        return HipressError(sentence)
