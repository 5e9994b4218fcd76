"""Connections between agents: when they are encrypted, and attackers on their path."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest

from harness.processes import free_port
from hipress.elastic import Agent, ElasticError
from hipress.elastic.membership import channel, tls
from hipress.elastic.membership.channel import HELLO_BYTES, MAGIC, Channel
from hipress.elastic.membership.membership_errors import Stranger

SECRET = b"0123456789abcdef"
PROOF_BYTES = 4 + 32
MARKER = b"a note that is easy to find"


class End(NamedTuple):
    """One of the two connections of a relay: the dialer's, or that to the listener."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


Relay = Callable[[End, End], Awaitable[None]]


@pytest.mark.parametrize(
    ("mode", "ours", "theirs", "expected"),
    [
        ("auto", "10.0.0.1", "10.0.0.2", True),
        ("auto", "10.0.0.1", "10.0.0.1", False),
        ("auto", "127.0.0.1", "127.0.0.2", False),
        ("auto", "127.0.0.1", "10.0.0.1", True),
        ("auto", "::1", "::1", False),
        ("auto", "fe80::1%eth0", "fe80::2%eth0", True),
        ("auto", "fe80::1%eth0", "fe80::1%eth1", False),
        ("auto", "::ffff:10.0.0.1", "10.0.0.1", False),
        ("auto", "::ffff:127.0.0.1", "127.0.0.1", False),
        ("on", "127.0.0.1", "127.0.0.1", True),
        ("off", "10.0.0.1", "10.0.0.2", False),
    ],
)
def test_tls_is_used_between_machines(mode: str, ours: str, theirs: str, expected: bool) -> None:
    assert tls.wants_tls(mode, ours, theirs) is expected


@contextlib.asynccontextmanager
async def _connected(
    relay: Relay, modes: tuple[str, str] = ("on", "on")
) -> AsyncIterator[list[asyncio.Future[Channel]]]:
    """Connect a dialer to a listener through ``relay``; yield both sides' handshakes."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Channel] = loop.create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answered.set_result(await channel.answer(reader, writer, SECRET, modes[1]))
        except Exception as error:
            answered.set_exception(error)
            writer.close()

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = listener.sockets[0].getsockname()[1]
        near, far = End(reader, writer), End(*await asyncio.open_connection("127.0.0.1", port))
        try:
            await relay(near, far)
        except (EOFError, OSError):
            pass
        finally:
            writer.close()
            far.writer.close()

    listener = await asyncio.start_server(listen, "127.0.0.1", 0)
    middle = await asyncio.start_server(between, "127.0.0.1", 0)
    port = middle.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def dial() -> Channel:
        try:
            return await channel.dial(reader, writer, SECRET, modes[0])
        except Exception:
            writer.close()
            raise

    dialed = asyncio.ensure_future(dial())
    try:
        await asyncio.wait([dialed, answered], timeout=10, return_when=asyncio.ALL_COMPLETED)
        yield [dialed, answered]
    finally:
        dialed.cancel()
        answered.cancel()
        writer.close()
        for server in (middle, listener):
            server.close()
        await asyncio.sleep(0.01)


def _same(data: bytes) -> bytes:
    return data


async def _copy_both_ways(near: End, far: End, change: Callable[[bytes], bytes] = _same) -> None:
    """Copy until one side ends its connection."""

    async def copy(source: End, target: End) -> None:
        while True:
            data = await source.reader.read(1 << 16)
            if not data:
                return
            target.writer.write(change(data))

    tasks = [asyncio.ensure_future(copy(near, far)), asyncio.ensure_future(copy(far, near))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


@pytest.mark.parametrize("mode", ["on", "off"])
def test_payloads_are_encrypted_unless_tls_is_off(mode: str) -> None:
    log = bytearray()

    def record(data: bytes) -> bytes:
        log.extend(data)
        return data

    async def relay(near: End, far: End) -> None:
        await _copy_both_ways(near, far, record)

    async def run() -> None:
        async with _connected(relay, (mode, mode)) as sides:
            dialer, listener = [side.result() for side in sides]
            for sender, receiver in ((dialer, listener), (listener, dialer)):
                for payload in (MARKER, MARKER * 20_000, b""):
                    sender.send(payload)
                    assert await asyncio.wait_for(receiver.receive(), 10) == payload

    asyncio.run(run())
    assert (MARKER in log) is (mode == "off")


def test_certificate_of_an_attacker_on_the_path_is_refused() -> None:
    """An attacker's certificate on the path is refused: the hellos and proofs pass unchanged, and
    TLS ends in between."""
    context = tls.listener_context.__wrapped__()[0]  # another key pair than this process's

    async def relay(near: End, far: End) -> None:
        for size in (HELLO_BYTES, PROOF_BYTES):
            far.writer.write(await near.reader.readexactly(size))
            near.writer.write(await far.reader.readexactly(size))
        stream = tls.TlsStream(*near, None)
        stream._ssl = context.wrap_bio(stream._incoming, stream._outgoing, server_side=True)
        await stream.handshake()
        await stream.readexactly(1)

    async def run() -> None:
        async with _connected(relay) as (dialed, answered):
            with pytest.raises(Stranger, match="certificate is not the one that it announced"):
                dialed.result()
            with pytest.raises((EOFError, OSError)):
                answered.result()

    asyncio.run(run())


@pytest.mark.parametrize("place", ["digest", "nonce"])
def test_changed_hello_is_refused(place: str) -> None:
    async def relay(near: End, far: End) -> None:
        far.writer.write(await near.reader.readexactly(HELLO_BYTES))
        hello = bytearray(await far.reader.readexactly(HELLO_BYTES))
        hello[-1 if place == "digest" else len(MAGIC) + 1] ^= 1
        near.writer.write(hello)
        await _copy_both_ways(near, far)

    async def run() -> None:
        async with _connected(relay) as (dialed, answered):
            with pytest.raises(Stranger, match="could not prove"):
                answered.result()
            with pytest.raises((EOFError, OSError)):
                dialed.result()

    asyncio.run(run())


def test_attacker_on_the_path_cannot_turn_tls_off() -> None:
    """An attacker on the path cannot turn TLS off by clearing the flags in both hellos: each end
    compares them with its own setting."""

    async def relay(near: End, far: End) -> None:
        for source, target in ((near, far), (far, near)):
            hello = bytearray(await source.reader.readexactly(HELLO_BYTES))
            hello[len(MAGIC)] = 0
            target.writer.write(hello)
        await near.reader.read(1)

    async def run() -> None:
        async with _connected(relay) as sides:
            for side in sides:
                with pytest.raises(Stranger, match="it does not want TLS and this end wants it"):
                    side.result()

    asyncio.run(run())


def test_changed_ciphertext_is_refused() -> None:
    changes = False

    def change(data: bytes) -> bytes:
        return data[:-1] + bytes([data[-1] ^ 1]) if changes else data

    async def relay(near: End, far: End) -> None:
        await _copy_both_ways(near, far, change)

    async def run() -> None:
        nonlocal changes
        async with _connected(relay) as sides:
            dialer, listener = [side.result() for side in sides]
            changes = True
            dialer.send(MARKER)
            with pytest.raises(Stranger, match="TLS failed"):
                await asyncio.wait_for(listener.receive(), 10)

    asyncio.run(run())


def test_only_tls_1_3_is_spoken() -> None:
    for context in (tls.listener_context()[0], tls._dialer_context()):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_certificate_is_loaded_without_memfd_create(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    tls.listener_context.cache_clear()
    context, digest = tls.listener_context()
    assert len(digest) == tls.DIGEST_BYTES and context.minimum_version is ssl.TLSVersion.TLSv1_3


def _fail() -> None:
    raise OSError("libhipress.so is missing")


@pytest.mark.parametrize(
    ("mode", "other"), [("on", "127.0.0.1"), ("auto", "192.0.2.1"), ("auto", "127.0.0.1")]
)
def test_agent_starts_without_a_certificate_only_where_tls_is_not_used(
    monkeypatch: pytest.MonkeyPatch, mode: str, other: str
) -> None:
    monkeypatch.setattr(tls, "_listener_context", _fail)
    tls.listener_context.cache_clear()
    agents = [("127.0.0.1", free_port()), (other, 9)]
    expected = contextlib.nullcontext()
    if (mode, other) != ("auto", "127.0.0.1"):
        expected = pytest.raises(ElasticError, match="libhipress.so is missing; HIPRESS_TLS=off")
    with expected:
        Agent(agents, 0, SECRET, 1, tls_mode=mode).close()
