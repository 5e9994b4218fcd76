"""Host files: one host per line, as in MXNet's and Open MPI's."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from itertools import groupby

from hipress.base import addresses, files

from .launch_error import LaunchError

_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_.-]+@)?\[(?P<v6>[0-9A-Za-z:.%_-]+)\]|(?P<name>[A-Za-z0-9_.@-]+))"
    r"(?::(?P<port>[^:]*))?"
)
_ALLOWED = (
    "allowed: 'host', 'host:ssh-port', 'user@host', each with 'slots=N' after it if "
    "wanted, and an IPv6 address in brackets"
)


@dataclass(frozen=True)
class Host:
    """One host: ``name`` as ssh takes it (``user@`` included), ssh port, processes of a role."""

    name: str
    port: int | None = None
    slots: int = 1

    @property
    def address(self) -> str:
        """The host without the user."""
        return self.name.rpartition("@")[2]


def read_hostfile(path: str) -> list[Host]:
    """Read a host file."""
    try:
        text = files.read(path, "host file")
    except files.FileError as error:
        raise LaunchError(str(error)) from error
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#", 1)[0].split()
        if fields:
            hosts.append(_parse_line(f"{path}:{number}", fields))
    if not hosts:
        raise LaunchError(f"{path}: this host file names no host")
    return hosts


def _parse_line(line_name: str, fields: list[str]) -> Host:
    match = _HOST.fullmatch(fields[0])
    # A name that starts with a dash would reach ssh as an option.
    if match is None or fields[0].startswith("-"):
        raise LaunchError(f"{line_name}: '{fields[0]}' is no host; {_ALLOWED}")
    name = match["name"] or (match["user"] or "") + _v6(line_name, match["v6"])
    port = None
    if match["port"] is not None:
        port = _number(line_name, "port", match["port"], 65535)
    slots = 1
    for field in fields[1:]:
        key, equals, value = field.partition("=")
        if key == "slots" and equals:
            slots = _number(line_name, "slots", value, 1 << 16)
        elif key not in ("max_slots", "max-slots") or not equals:
            raise LaunchError(f"{line_name}: '{field}' is not understood; {_ALLOWED}")
    return Host(name, port, slots)


def _v6(line_name: str, text: str) -> str:
    """Return an IPv6 address in canonical form, so that lines of the same host compare equal."""
    if addresses.is_link_local(text):
        raise LaunchError(f"{line_name}: {text} is {addresses.LINK_LOCAL}")
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError as error:
        raise LaunchError(f"{line_name}: '[{text}]' is no IPv6 address; {_ALLOWED}") from error


def _number(line_name: str, what: str, text: str, largest: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= largest:
        raise LaunchError(
            f"{line_name}: {what} is '{text}', but must be a number from 1 to {largest}"
        )
    return int(text)


def place(hosts: list[Host], count: int) -> list[Host]:
    """Return the host of each of ``count`` ranks.

    Slots are filled in the file's order. If there are more ranks, hosts are used again from the
    first on.
    """
    slots = [host for host in hosts for _ in range(host.slots)]
    return [slots[rank % len(slots)] for rank in range(count)]


def workers_per_host(hosts: list[Host], count: int) -> int | None:
    """Return the number of consecutive workers on each host, or None if it differs.

    The last host may have fewer. The result is also None if a host gets workers again after other
    hosts. Lines with the same address are one host.
    """
    placed = groupby(host.address for host in place(hosts, count))
    runs = [(address, len(list(run))) for address, run in placed]
    sizes = [size for _, size in runs]
    if len({address for address, _ in runs}) < len(runs) or sizes[-1] > sizes[0]:
        return None
    return sizes[0] if all(size == sizes[0] for size in sizes[:-1]) else None
