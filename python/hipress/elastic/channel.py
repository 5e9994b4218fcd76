"""Authenticated frames on one connection: whoever wrote them has the job's secret.

Each side contributes a nonce, and of the secret and both nonces comes a key for each direction. A
frame is its length (4 bytes, big-endian), HMAC-SHA256 over a counter, the length and the payload,
and the payload. So a frame that is changed, repeated, left out, or taken from another connection is
noticed. Nothing is encrypted.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import struct

MAGIC = b"HIPRELA1"
NONCE_BYTES = 16
FIRST_FRAME_BYTES = 4096  # until the other side has shown that it has the secret
FRAME_BYTES = 1 << 20
_MAC_BYTES = 32


class Stranger(Exception):
    """The other side is no process of this job; the text says how that showed."""


class Channel:
    """One connection, on either side, once the nonces are exchanged."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: bytes,
        nonces: bytes,
        dials: bool,
    ) -> None:
        ours, theirs = (b"dialer", b"listener") if dials else (b"listener", b"dialer")
        self.writer = writer
        self._reader = reader
        self._send_key = hmac.digest(secret, ours + nonces, hashlib.sha256)
        self._receive_key = hmac.digest(secret, theirs + nonces, hashlib.sha256)
        self._sent = self._received = 0

    def send(self, payload: bytes) -> None:
        """Queues one frame. Raises nothing: a broken connection shows in ``receive``."""
        length = struct.pack(">I", len(payload))
        mac = _mac(self._send_key, self._sent, length, payload)
        self._sent += 1
        self.writer.write(length + mac + payload)

    async def receive(self) -> bytes:
        """The next frame's payload.

        :raises Stranger: it is none of the other side's, or too long
        :raises EOFError, OSError: the connection is over
        """
        head = await self._reader.readexactly(4 + _MAC_BYTES)
        (size,) = struct.unpack(">I", head[:4])
        limit = FRAME_BYTES if self._received else FIRST_FRAME_BYTES
        if size > limit:
            raise Stranger(f"it announced {size} bytes where at most {limit} are allowed")
        payload = await self._reader.readexactly(size)
        if not hmac.compare_digest(
            head[4:], _mac(self._receive_key, self._received, head[:4], payload)
        ):
            raise Stranger("it could not prove that it knows the job's secret (HIPRESS_SECRET)")
        self._received += 1
        return payload


def _mac(key: bytes, counter: int, length: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, struct.pack(">Q", counter) + length + payload, hashlib.sha256)


async def dial(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes
) -> Channel:
    """The dialer's side of the exchange of nonces."""
    theirs = await _nonce(reader)
    ours = os.urandom(NONCE_BYTES)
    writer.write(MAGIC + ours)
    return Channel(reader, writer, secret, ours + theirs, dials=True)


async def answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes
) -> Channel:
    """The listener's side of the exchange of nonces."""
    ours = os.urandom(NONCE_BYTES)
    writer.write(MAGIC + ours)
    theirs = await _nonce(reader)
    return Channel(reader, writer, secret, theirs + ours, dials=False)


async def _nonce(reader: asyncio.StreamReader) -> bytes:
    data = await reader.readexactly(len(MAGIC) + NONCE_BYTES)
    if data[: len(MAGIC)] != MAGIC:
        raise Stranger("it does not speak this protocol")
    return data[len(MAGIC) :]
