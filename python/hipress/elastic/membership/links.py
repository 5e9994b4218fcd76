"""Connections between agents: one outgoing to each other slot, any number incoming."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from hipress.base import addresses
from hipress.elastic.membership import channel, messages
from hipress.elastic.membership.channel import Channel
from hipress.elastic.membership.membership_errors import ElasticError, Stranger
from hipress.elastic.membership.messages import Malformed
from hipress.elastic.membership.view import Member

log = logging.getLogger("hipress.elastic")

CONNECT_SECONDS = 2.0
HANDSHAKE_SECONDS = 5.0  # four round trips
RETRY_SECONDS = (0.05, 0.5)  # between attempts to connect, at first and later
QUEUED_MESSAGES = 256
UNPROVEN_CONNECTIONS = 256  # most connections that have not yet proved the job's secret
_BACKLOG = 128  # asyncio accepts up to this many connections at once


class Link:
    """Connection to the present process at a slot, made again when it breaks.

    Args:
        owner: the :class:`.agent_thread.AgentThread`
    """

    def __init__(self, owner: Any, slot: int, host: str, port: int) -> None:
        self._owner = owner
        self._slot, self._host, self._port = slot, host, port
        self._queue: deque[Any] = deque(maxlen=QUEUED_MESSAGES)
        self._channel: Channel | None = None
        self._wake = asyncio.Event()
        self.writer: asyncio.StreamWriter | None = None
        self.tried: tuple[str, int] | None = None
        """The IP address and port of the last attempt to connect."""
        self.substituted = False
        """Whether that address is this host's own because the slot's name means loopback here."""

    def send(self, payload: Any) -> None:
        """Send a JSON value now or when a connection exists. The value may get lost."""
        if self._channel is not None:
            self._write(self._channel, payload)
        else:
            self._queue.append(payload)
            self.wake()

    def wake(self) -> None:
        """Try to connect now, if there is no connection."""
        self._wake.set()

    def redial(self) -> None:
        """Connect again, to the process that is at the slot now."""
        if self.writer is not None:
            self.writer.transport.abort()
        self.wake()

    async def run(self) -> None:
        """Keep the connection, and send what is in the queue, until the task is canceled."""
        delay = RETRY_SECONDS[0]
        while True:
            self._wake.clear()
            before, undelivered = self._owner.known_at(self._slot), list(self._queue)
            try:
                await self._connected()
                delay = RETRY_SECONDS[0]
                continue  # it was connected: the process has died, or the connection was cut
            except ConnectionRefusedError:
                self._queue.clear()
                self._owner.on_refused(self._slot, before, undelivered)
            except Stranger as why:
                log.warning(
                    "elastic: what listens at slot %d (%s) is no process of this job: %s",
                    *(self._slot, addresses.join(self._host, self._port), why),
                )
                delay = RETRY_SECONDS[1]
            except (OSError, EOFError, asyncio.TimeoutError, Malformed, UnicodeError):
                pass  # UnicodeError: the slot's host is no valid name
            try:
                await asyncio.wait_for(self._wake.wait(), delay)
                await asyncio.sleep(RETRY_SECONDS[0] / 5)
            except asyncio.TimeoutError:
                delay = min(delay * 1.5, RETRY_SECONDS[1])

    async def _connected(self) -> None:
        """Connect, and return when the connection has ended.

        Raise an error if none was established.
        """
        reader, self.writer = await asyncio.wait_for(self._open(), CONNECT_SECONDS)
        writer = self.writer
        try:
            made = await asyncio.wait_for(self._handshake(reader, writer), HANDSHAKE_SECONDS)
            self._channel = made
            while self._queue:
                self._write(made, self._queue.popleft())
            try:
                await made.receive()  # nothing arrives in this direction except the end
            except (OSError, EOFError, Stranger):
                pass
        finally:
            self._channel = self.writer = None
            writer.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to one address only, so that a refusal is reported as one."""
        where = self._host, self._port
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(*where, type=socket.SOCK_STREAM)
        except RuntimeError:  # the interpreter ends, and its pool of threads has ended already
            infos = socket.getaddrinfo(*where, type=socket.SOCK_STREAM)
        family, _, _, _, sockaddr = addresses.preferred(infos)
        address = sockaddr[0]
        self.substituted = bool(self._owner.other_address) and addresses.is_loopback(address)
        if self.substituted:
            family, address = 0, self._owner.other_address  # where this machine's agents listen
        self.tried = address, sockaddr[1]
        return await asyncio.open_connection(address, sockaddr[1], family=family)

    async def _handshake(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Channel:
        made = await channel.dial(reader, writer, self._owner.secret, self._owner.tls_mode)
        made.send(messages.dumps([messages.member_to_plain(self._owner.me), self._slot]))
        member = messages.member_from_plain(messages.loads(await made.receive()))
        if member.slot != self._slot:
            raise Stranger(f"it says it is slot {member.slot}")
        self._owner.on_answer(member)
        self._owner.on_connected(member)
        return made

    def _write(self, made: Channel, payload: Any) -> None:
        if made.writer.transport.get_write_buffer_size() > channel.FRAME_BYTES:
            return  # it does not read; what it misses is sent again when it does
        made.send(messages.dumps(payload))


class Listener:
    """Server for connections from other agents' links."""

    def __init__(self, owner: Any, wake_link: Callable[[int], None]) -> None:
        self._owner = owner
        self._wake_link = wake_link
        self._unproven: dict[asyncio.StreamWriter, None] = {}  # the oldest connection first
        self._server: asyncio.AbstractServer | None = None
        self.writers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> None:
        """Start to listen.

        Raises:
            OSError: it cannot listen there
        """
        self._server = await asyncio.start_server(self._serve, host, port, backlog=_BACKLOG)

    @property
    def sockets(self) -> list[Any]:
        """Return the sockets that listen."""
        return list(self._server.sockets) if self._server is not None else []

    def close(self) -> None:
        """Stop to listen, and close all accepted connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self.writers):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._unproven) >= UNPROVEN_CONNECTIONS:
            self._drop_slowest()
        self.writers.add(writer)
        self._unproven[writer] = None
        sender = None
        try:
            made, sender = await asyncio.wait_for(
                self._handshake(reader, writer), HANDSHAKE_SECONDS
            )
            self._owner.on_connected(sender)
            while True:
                self._owner.on_payload(sender, messages.loads(await made.receive()))
        except (Stranger, Malformed) as why:
            log.warning("elastic: a connection from %s was closed: %s", _peer(writer), why)
        except ElasticError as why:
            log.error("elastic: a connection from %s was closed: %s", _peer(writer), why)
        except (OSError, EOFError, asyncio.TimeoutError):
            if sender is None:
                log.info("elastic: a connection from %s ended in its handshake", _peer(writer))
        finally:
            self._unproven.pop(writer, None)
            self.writers.discard(writer)
            writer.close()
            if sender is not None:
                self._wake_link(sender.slot)

    def _drop_slowest(self) -> None:
        """Close the oldest unproven connection, since a new one may be from another agent."""
        slowest = next(iter(self._unproven))
        del self._unproven[slowest]
        log.info("elastic: dropped the slowest connection in a crowd, from %s", _peer(slowest))
        slowest.transport.abort()

    async def _handshake(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Channel, Member]:
        made = await channel.answer(
            reader,
            writer,
            self._owner.secret,
            self._owner.tls_mode,
            on_proof=lambda: self._unproven.pop(writer, None),
        )
        hello = messages.loads(await made.receive())
        if not isinstance(hello, list) or len(hello) != 2:
            raise Malformed("no greeting")
        if hello[1] != self._owner.me.slot:
            raise Stranger(f"it looks for slot {hello[1]!r:.20}, and this is {self._owner.me.slot}")
        sender = messages.member_from_plain(hello[0])
        if not self._owner.has_other_slot(sender.slot):
            raise Stranger(f"it says it is slot {sender.slot}, which is no other slot of this job")
        made.send(messages.dumps(messages.member_to_plain(self._owner.me)))
        return made, sender


def _peer(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return addresses.join(name[0], name[1]) if name else "somewhere"
