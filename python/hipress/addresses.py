"""Addresses of this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterable


def towards(target: str) -> str:
    """The address on the route to ``target``. Sends nothing."""
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def resolve(host: str) -> str | None:
    """The host's address as this machine sees it, IPv4 before IPv6; None if it is unknown here
    (ssh may know the name all the same, from its own configuration)."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # such as two dots in a row
        return None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


def is_loopback(address: str) -> bool:
    """Whether an address as :func:`resolve` gives it stays on its machine."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def behind_loopback(host: str, hosts: Iterable[str]) -> str | None:
    """The address by which ``hosts`` reach this machine, if ``host`` means loopback here, as a
    machine's own name does under Debian, and some of them are other machines; else None."""
    address = resolve(host)
    if address is None or not is_loopback(address):
        return None
    remote = [one for one in map(resolve, hosts) if one and not is_loopback(one)]
    found = towards(remote[0]) if remote else address
    return None if is_loopback(found) else found


def is_unclear(host: str, hosts: Iterable[str]) -> bool:
    """Whether ``host`` means loopback here, and it is not known by which address the others, which
    are not all on this machine, reach it: their names are not known, or there is no route."""
    address = resolve(host)
    if address is None or not is_loopback(address) or behind_loopback(host, hosts):
        return False
    return not all(one and is_loopback(one) for one in map(resolve, hosts))


def of_this_machine() -> str:
    """An address by which other machines may reach this one: that on the default route, else that
    of the first interface; loopback, if it has no other. Sends nothing."""
    found = [towards("192.0.2.1"), *_of_interfaces().values()]  # RFC 5737: the first is nobody's
    return next((one for one in found if not is_loopback(one)), found[0])


def of_interface(name: str) -> str:
    """The IPv4 address of a network interface.

    :raises ValueError: listing the interfaces there are
    """
    import fcntl
    import struct

    siocgifaddr = 0x8915
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", os.fsencode(name)[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe, siocgifaddr, request)[20:24])
        except OSError as error:
            known = ", ".join(entry[1] for entry in socket.if_nameindex())
            raise ValueError(
                f"no IPv4 address on network interface '{name}'; this machine has {known}"
            ) from error


def interface_with(address: str) -> str:
    """The network interface with this IPv4 address; empty if there is none."""
    return next((name for name, one in _of_interfaces().items() if one == address), "")


def _of_interfaces() -> dict[str, str]:
    """The IPv4 address of each network interface that has one, by name."""
    found = {}
    for _, name in socket.if_nameindex():
        with contextlib.suppress(ValueError):  # it has no address
            found[name] = of_interface(name)
    return found
