"""Evidence from this host's kernel: whether a process of this host has ended.

A refused connection proves nothing: a gateway may have refused it while the process still runs.
The kernel's process table and its table of listening sockets are reliable.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket

from hipress.base import process_table
from hipress.base.process_table import start_time
from hipress.elastic.membership.view import NO_PROCESS, Process


@functools.cache
def host() -> tuple[str, str]:
    """Return the boot id and the process namespace of this process; empty if they are not known."""
    boot, namespace = process_table.boot_id(), process_table.namespace()
    return (boot, namespace) if boot and namespace else ("", "")


def this_process() -> Process:
    """Return what identifies this process on its host."""
    boot, namespace = host()
    start = start_time(os.getpid())
    return Process(boot, namespace, os.getpid(), start) if boot and start else NO_PROCESS


def is_running(process: Process) -> bool:
    """Return whether a process is in the process table of this host. False proves nothing."""
    if not process.boot or (process.boot, process.namespace) != host():
        return False
    return process.start > 0 and start_time(process.pid) == process.start


def is_of_this_host(process: Process, address: str) -> bool:
    """Return whether another process has the same kernel and process table as this one.

    Virtual machines that were cloned from one snapshot have the same boot id and the same
    namespaces. Therefore the other process's address must also be one of this host's.

    Args:
        process: the other process's description of itself.
        address: IP address at which it listens.
    """
    same = bool(process.boot) and (process.boot, process.namespace) == host()
    return same and is_own_address(address)


def has_ended(process: Process, address: str) -> bool:
    """Return whether the kernel shows that a process of this host has ended.

    False proves nothing. True proves the end only of a process that ``is_running`` has shown
    before: a clone of this host may have this host's addresses in its own table of names.

    Args:
        process: the process's description of itself.
        address: IP address at which it has listened.
    """
    if not is_of_this_host(process, address):
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # the process belongs to another user
    start = start_time(process.pid)
    return start is not None and start != process.start


def is_own_address(host: str) -> bool:
    """Return whether a text is one of this host's IP addresses. Sends nothing.

    False proves nothing.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if address.is_unspecified or address.is_multicast:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    if address.version == 4 and address.is_loopback:
        return True  # 127.0.0.0/8
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            if _binds_own_addresses_only(address.version):
                probe.bind((host, 0))
                return True
            probe.connect((host, 9))  # finds the source address, which may be another own one
            return bool(probe.getsockname()[0] == host)
    except OSError:
        return False


def _binds_own_addresses_only(version: int) -> bool:
    """Return whether the kernel binds sockets to no other host's address of this IP version."""
    try:
        with open(f"/proc/sys/net/ipv{version}/ip_nonlocal_bind") as file:
            return file.read().strip() == "0"
    except OSError:
        return False


def is_vacant(host: str, port: int) -> bool:
    """Return whether an IP address is on this host and no process listens at it.

    False proves nothing. The kernel may forward connections to other hosts, such as containers,
    without a socket that listens here. Therefore True is evidence only about this host's processes.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not is_own_address(host):
        return False
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # With this option, binding fails only if another socket listens.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True
