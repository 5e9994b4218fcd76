"""IPv4 and IPv6 addresses: of this machine, of other hosts, and as text.

The native library has the same rules (``src/transport/address.h``): IPv4 is preferred where a host
has both, an IPv4-mapped IPv6 address is the IPv4 address that it contains, and link-local IPv6
addresses are not used.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LOCAL_NAMES = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
"""Names of the loopback interface."""
LINK_LOCAL = (
    "a link-local IPv6 address, which has a different meaning on each network interface; use a "
    "global address, a unique local address (fd00::/8) or a host name"
)
"""Description of a link-local address for messages: "ADDRESS is ..."."""
_TEST_NETWORKS = ("192.0.2.1", "2001:db8::1")
"""Addresses on the default routes that no host uses (RFC 5737, RFC 3849)."""
_IF_INET6 = Path("/proc/net/if_inet6")
_TEMPORARY, _DAD_FAILED, _DEPRECATED = 0x01, 0x08, 0x20
"""Flags of an IPv6 address (Linux, ``if_addr.h``)."""


def join(host: str, port: int | str) -> str:
    """Join host and port, with an IPv6 address in brackets.

    >>> join("::1", 80), join("10.0.0.2", 80)
    ('[::1]:80', '10.0.0.2:80')
    """
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def split(text: str) -> tuple[str, int]:
    """Split ``host:port``, or ``[IPv6 address]:port``.

    >>> split("[::1]:80"), split("node1:80")
    (('::1', 80), ('node1', 80))
    """
    host, colon, port = text.rpartition(":")
    bare = without_brackets(host)
    if not (colon and bare and port.isascii() and port.isdigit() and 0 < int(port) < 65536) or (
        ":" in bare
    ) != (bare != host):
        raise ValueError(
            f"an address is written host:port, or [IPv6 address]:port, with a port from 1 to "
            f"65535, not '{text}'"
        )
    return bare, int(port)


def without_brackets(host: str) -> str:
    """Return a host without the brackets that surround an IPv6 address in ``host:port``."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def family_of(host: str) -> socket.AddressFamily:
    """Return the version of an address, or of the address to which a host name resolves."""
    return socket.AF_INET6 if ":" in (resolve(host) or "") else socket.AF_INET


def towards(target: str) -> str:
    """Return this machine's address on the route to ``target``. Sends nothing."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return "::1" if ":" in target else "127.0.0.1"


def resolve(host: str) -> str | None:
    """Return the host's address, or None if this machine, other than ssh, cannot resolve it."""
    try:
        found = socket.getaddrinfo(without_brackets(host), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # such as two dots in a row
        return None
    return _unmapped(str(preferred(found)[4][0]))


def preferred(found: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Choose the first IPv4, otherwise the first IPv6 result that has a route, or the first."""
    found = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    if len(found) == 1:
        return found[0]
    return next((entry for entry in found if _has_route(entry)), found[0])


def _has_route(entry: tuple[Any, ...]) -> bool:
    try:
        with socket.socket(entry[0], socket.SOCK_DGRAM) as probe:
            probe.connect((entry[4][0], 9, *entry[4][2:]))
    except OSError:
        return False
    return True


def _unmapped(address: str) -> str:
    """Return the IPv4 address in an IPv4-mapped IPv6 address, or any other address unchanged."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return address if mapped is None else str(mapped)


def is_loopback(address: str) -> bool:
    """Return whether an address, as :func:`resolve` returns it, is a loopback address."""
    return ipaddress.ip_address(_unmapped(address).partition("%")[0]).is_loopback


def is_link_local(address: str) -> bool:
    """Return whether a text is a link-local IPv6 address, such as ``fe80::1%eth0``."""
    try:
        return ipaddress.IPv6Address(without_brackets(address).partition("%")[0]).is_link_local
    except ValueError:  # a name, or an IPv4 address
        return False


def behind_loopback(host: str, hosts: Iterable[str]) -> str | None:
    """Return the address by which ``hosts`` reach this machine, if ``host`` is loopback here.

    Under Debian a machine's own name resolves to loopback. Return None if ``host`` is not loopback
    or all hosts are this machine.
    """
    address = resolve(host)
    if address is None or not is_loopback(address):
        return None
    remote = [one for one in map(resolve, hosts) if one and not is_loopback(one)]
    found = towards(remote[0]) if remote else address
    return None if is_loopback(found) else found


def is_unclear(host: str, hosts: Iterable[str]) -> bool:
    """Return whether ``host`` is loopback here and other hosts' route to it is unknown."""
    address = resolve(host)
    if address is None or not is_loopback(address) or behind_loopback(host, hosts):
        return False
    return not all(one and is_loopback(one) for one in map(resolve, hosts))


def of_this_machine() -> str:
    """Return the address on a default route, otherwise of an interface, otherwise loopback."""
    interfaces = _of_interfaces()
    v4 = [found[0] for found in interfaces.values() if ":" not in found[0]]
    v6 = [found[-1] for found in interfaces.values() if ":" in found[-1]]
    found = [*map(towards, _TEST_NETWORKS), *v4, *v6]
    return next((one for one in found if not is_loopback(one) and not is_link_local(one)), found[0])


def of_interface(name: str, family: int = socket.AF_INET) -> str:
    """Return an address of a network interface such as ``eth0``, preferably of ``family``.

    Link-local IPv6 addresses do not count.
    """
    found = _of_interfaces().get(name)
    if found is None:
        known = ", ".join(entry[1] for entry in socket.if_nameindex())
        raise ValueError(
            f"no address on network interface '{name}' (link-local IPv6 addresses do not count); "
            f"this machine has {known}"
        )
    return next((one for one in found if (":" in one) == (family == socket.AF_INET6)), found[0])


def interface_with(address: str) -> str:
    """Return the network interface with this address, or an empty string."""
    address = _unmapped(address)
    return next((name for name, found in _of_interfaces().items() if address in found), "")


def _of_interfaces() -> dict[str, list[str]]:
    """Return the addresses of each network interface that has one, by name, IPv4 first."""
    found: dict[str, list[str]] = {}
    v6 = _v6_of_interfaces()
    for _, name in socket.if_nameindex():
        addresses = [*_v4_of_interface(name), *v6.get(name, [])]
        if addresses:
            found[name] = addresses
    return found


def _v4_of_interface(name: str) -> list[str]:
    import fcntl
    import struct

    siocgifaddr = 0x8915
    request = struct.pack("256s", os.fsencode(name)[:15])
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return [socket.inet_ntoa(fcntl.ioctl(probe, siocgifaddr, request)[20:24])]
    return []  # the interface has none


def _v6_of_interfaces() -> dict[str, list[str]]:
    """Return IPv6 addresses by interface, permanent ones before temporary ones."""
    rows: list[tuple[bool, str, str]] = []
    with contextlib.suppress(OSError):  # IPv6 is turned off
        for line in _IF_INET6.read_text().splitlines():
            digits, _, _, _, flags, name = line.split()
            address = str(ipaddress.IPv6Address(bytes.fromhex(digits)))
            if not is_link_local(address) and not int(flags, 16) & _DAD_FAILED:
                rows.append((bool(int(flags, 16) & (_TEMPORARY | _DEPRECATED)), name, address))
    found: dict[str, list[str]] = {}
    for _, name, address in sorted(rows, key=lambda row: row[0]):
        found.setdefault(name, []).append(address)
    return found
