"""TLS 1.3 on the connections between agents of different machines.

The standard library's ``ssl`` has pre-shared keys only from Python 3.13 on, so the listener has a
certificate. Each process makes its own certificate, which no authority signs. The dialer compares
its digest with the one that the handshake in ``channel.py`` has authenticated.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import ipaddress
import ssl

from hipress.base import files
from hipress.elastic.membership.membership_errors import ElasticError, Stranger

MODES = ("auto", "on", "off")
DIGEST_BYTES = 32
_READ_BYTES = 1 << 16


def wants_tls(mode: str, ours: str, theirs: str) -> bool:
    """Return whether a connection between two addresses is encrypted, as ``WantsTls`` in C++ does.

    Args:
        mode: one of ``MODES``.
        ours: address of this end of the connection.
        theirs: address of the other end.
    """
    if mode != "auto":
        return mode == "on"
    addresses = [ipaddress.ip_address(address.partition("%")[0]) for address in (ours, theirs)]
    one, other = [getattr(end, "ipv4_mapped", None) or end for end in addresses]
    return one != other and not (one.is_loopback and other.is_loopback)


@functools.cache
def listener_context() -> tuple[ssl.SSLContext, bytes]:
    """Return the context of this process's listener, and its certificate's SHA-256 digest.

    Raises:
        ElasticError: there is no certificate, for example because the native library is missing.
    """
    try:
        return _listener_context()
    except (AttributeError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise ElasticError(
            f"cannot make a certificate for encrypted connections between workers: {error}; "
            "HIPRESS_TLS=off turns encryption off"
        ) from error


def _listener_context() -> tuple[ssl.SSLContext, bytes]:
    from hipress.native.library import call, lib  # only where TLS is used

    pem = call(lib.HipressMakeCertificate, kind=RuntimeError)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    with files.anonymous("hipress-certificate", pem.encode()) as file:  # ``ssl`` reads files only
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context, hashlib.sha256(ssl.PEM_cert_to_DER_cert(_first_block(pem))).digest()


def _first_block(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[: pem.index(end) + len(end)] + "\n"


@functools.cache
def _dialer_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # TlsStream.handshake compares the digest instead
    return context


class TlsStream:
    """One encrypted connection, on top of a stream reader and writer of asyncio.

    Args:
        expected: digest of the listener's certificate on the dialer's side; None on the other side.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        expected: bytes | None,
    ) -> None:
        self._reader, self._writer, self._expected = reader, writer, expected
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        listens = expected is None
        context = listener_context()[0] if listens else _dialer_context()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=listens)
        self._received = bytearray()

    async def handshake(self) -> None:
        """Run the TLS handshake.

        Raises:
            Stranger: the other side does not have the expected certificate, or breaks the protocol.
            EOFError, OSError: the connection is over.
        """
        while True:
            try:
                self._ssl.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._receive()
            except ssl.SSLError as error:
                raise Stranger(f"TLS failed: {error.reason}") from error
        self._flush()
        if self._expected is not None:
            certificate = self._ssl.getpeercert(binary_form=True) or b""
            if hashlib.sha256(certificate).digest() != self._expected:
                raise Stranger("its certificate is not the one that it announced")

    async def readexactly(self, count: int) -> bytes:
        """Return the next ``count`` bytes, as ``asyncio.StreamReader.readexactly`` does.

        Raises:
            Stranger: bytes were changed on the way.
            EOFError, OSError: the connection is over.
        """
        while len(self._received) < count:
            try:
                data = self._ssl.read(_READ_BYTES)
                if not data:
                    raise EOFError("the connection was closed")
                self._received += data
            except ssl.SSLWantReadError:
                await self._receive()
            except ssl.SSLZeroReturnError as error:
                raise EOFError("the connection was closed") from error
            except ssl.SSLError as error:
                raise Stranger(f"TLS failed: {error.reason}") from error
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def write(self, data: bytes) -> None:
        """Queue bytes. If the connection is broken, ``readexactly`` raises the error."""
        with contextlib.suppress(ssl.SSLError):
            self._ssl.write(data)
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._writer.write(self._outgoing.read())

    async def _receive(self) -> None:
        self._flush()
        data = await self._reader.read(_READ_BYTES)
        if not data:
            raise EOFError("the connection was closed")
        self._incoming.write(data)
