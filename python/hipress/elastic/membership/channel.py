"""Authenticated and, between machines, encrypted frames on one connection.

The handshake has four parts:

1. Each side sends a hello: a nonce, whether it wants TLS, and with TLS the digest of the listener's
   certificate. From the secret and both hellos each side derives a key for each direction.
2. The dialer sends an empty frame, and then the listener does. Each proves the job's secret.
3. If both hellos say so, the connection continues in TLS 1.3 (``tls.py``). The dialer accepts only
   the certificate from the listener's hello. An attacker on the path cannot replace the digest,
   because the keys depend on it, and cannot use the certificate without the listener's private key.
4. Frames follow, inside TLS where it is used.

A frame is its length (4 bytes, big-endian), HMAC-SHA256 over a counter, the length and the payload,
and the payload. So a frame that is changed, repeated, left out, or taken from another connection is
detected also without TLS.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

from hipress.elastic.membership.membership_errors import Stranger
from hipress.elastic.membership.tls import DIGEST_BYTES, TlsStream, listener_context, wants_tls

MAGIC = b"HIPRELA2"
NONCE_BYTES = 16
HELLO_BYTES = len(MAGIC) + 1 + NONCE_BYTES + DIGEST_BYTES
FRAME_BYTES = 1 << 20
_MAC_BYTES = 32


@dataclass(frozen=True)
class _Hello:
    """First message of one side."""

    tls: bool
    digest: bytes = bytes(DIGEST_BYTES)
    nonce: bytes = b""

    def pack(self) -> bytes:
        return MAGIC + bytes([self.tls]) + self.nonce + self.digest


class Channel:
    """One side of a connection after both hellos were exchanged.

    Args:
        hellos: the dialer's hello and the listener's.
        dials: whether this side is the dialer.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        secret: bytes,
        hellos: bytes,
        dials: bool,
    ) -> None:
        ours, theirs = (b"dialer", b"listener") if dials else (b"listener", b"dialer")
        self.writer = writer
        self._stream: asyncio.StreamReader | TlsStream = reader
        self._write = writer.write
        self._send_key = hmac.digest(secret, ours + hellos, hashlib.sha256)
        self._receive_key = hmac.digest(secret, theirs + hellos, hashlib.sha256)
        self._sent = self._received = 0

    def send(self, payload: bytes) -> None:
        """Queue one frame. If the connection is broken, ``receive`` raises the error."""
        length = struct.pack(">I", len(payload))
        mac = _mac(self._send_key, self._sent, length, payload)
        self._sent += 1
        self._write(length + mac + payload)

    async def receive(self) -> bytes:
        """Return the next frame's payload.

        Raises:
            Stranger: the frame is not the other side's, or is too long.
            EOFError, OSError: the connection is over.
        """
        head = await self._stream.readexactly(4 + _MAC_BYTES)
        (size,) = struct.unpack(">I", head[:4])
        limit = FRAME_BYTES if self._received else 0  # the first frame is the proof
        if size > limit:
            raise Stranger(f"it announced {size} bytes where at most {limit} are allowed")
        payload = await self._stream.readexactly(size)
        if not hmac.compare_digest(
            head[4:], _mac(self._receive_key, self._received, head[:4], payload)
        ):
            raise Stranger("it could not prove that it knows the job's secret (HIPRESS_SECRET)")
        self._received += 1
        return payload

    async def encrypt(self, reader: asyncio.StreamReader, expected: bytes | None) -> None:
        """Continue in TLS; ``expected`` as in ``TlsStream``.

        Raises:
            Stranger, EOFError, OSError: as ``TlsStream.handshake`` does.
        """
        stream = TlsStream(reader, self.writer, expected)
        await stream.handshake()
        self._stream, self._write = stream, stream.write


def _mac(key: bytes, counter: int, length: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, struct.pack(">Q", counter) + length + payload, hashlib.sha256)


async def dial(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: bytes, tls_mode: str
) -> Channel:
    """Run the handshake on the dialer's side.

    Raises ``Stranger`` if the other side is no process of this job, and EOFError or OSError if the
    connection has ended.
    """
    ours = _Hello(_wants_tls(writer, tls_mode), nonce=os.urandom(NONCE_BYTES))
    theirs = await _exchange(reader, writer, ours)
    channel = Channel(reader, writer, secret, ours.pack() + theirs.pack(), dials=True)
    channel.send(b"")
    await channel.receive()
    if ours.tls:
        await channel.encrypt(reader, theirs.digest)
    return channel


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    secret: bytes,
    tls_mode: str,
    on_proof: Callable[[], object] = lambda: None,
) -> Channel:
    """Run the handshake on the listener's side; other arguments and errors as in ``dial``.

    ``on_proof`` is called when the dialer has proved the job's secret.
    """
    tls, nonce = _wants_tls(writer, tls_mode), os.urandom(NONCE_BYTES)
    ours = _Hello(tls, listener_context()[1], nonce) if tls else _Hello(tls, nonce=nonce)
    theirs = await _exchange(reader, writer, ours)
    channel = Channel(reader, writer, secret, theirs.pack() + ours.pack(), dials=False)
    await channel.receive()
    on_proof()
    channel.send(b"")
    if ours.tls:
        await channel.encrypt(reader, None)
    return channel


def _wants_tls(writer: asyncio.StreamWriter, tls_mode: str) -> bool:
    addresses = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
    if not all(addresses):
        raise EOFError("the connection was closed")
    return wants_tls(tls_mode, *(end[0] for end in addresses))


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ours: _Hello
) -> _Hello:
    writer.write(ours.pack())
    data = await reader.readexactly(HELLO_BYTES)
    tls, rest = data[len(MAGIC)], data[len(MAGIC) + 1 :]
    if data[: len(MAGIC)] != MAGIC or tls > 1:
        raise Stranger("it does not speak this protocol")
    if bool(tls) != ours.tls:
        raise Stranger(
            f"it {'wants' if tls else 'does not want'} TLS and this end "
            f"{'wants it' if ours.tls else 'does not'}; set HIPRESS_TLS to the same value for all "
            "processes"
        )
    return _Hello(bool(tls), rest[NONCE_BYTES:], rest[:NONCE_BYTES])
