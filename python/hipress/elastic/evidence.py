"""Evidence from this host's kernel: whether a process of this host has ended.

A refused connection proves nothing: a gateway may have refused it while the process still runs.
The kernel's process table and its table of listening sockets are reliable.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket

from hipress.elastic.view import NO_PROCESS, Process


@functools.cache
def host() -> tuple[str, str]:
    """Return the boot id and the process namespace of this process; empty if they are not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        # Start times are relative to the time namespace, which older kernels lack.
        spaces = [f"/proc/self/ns/{kind}" for kind in ("pid", "time")]
        namespace = " ".join(os.readlink(space) for space in spaces if os.path.exists(space))
        own_table = os.readlink("/proc/self") == str(os.getpid())  # not another namespace's /proc
    except OSError:
        return "", ""
    return (boot, namespace) if own_table else ("", "")


def this_process() -> Process:
    """Return what identifies this process on its host."""
    boot, namespace = host()
    start = _start(os.getpid())
    return Process(boot, namespace, os.getpid(), start) if boot and start else NO_PROCESS


def is_running(process: Process) -> bool:
    """Return whether a process is in the process table of this host. False proves nothing."""
    if not process.boot or (process.boot, process.namespace) != host():
        return False
    return process.start > 0 and _start(process.pid) == process.start


def is_of_this_host(process: Process, address: str) -> bool:
    """Return whether another process has the same kernel and process table as this one.

    Virtual machines that were cloned from one snapshot have the same boot id and the same
    namespaces. Therefore the other process's address must also be one of this host's.

    Args:
        process: what the other process says about itself.
        address: IP address at which it listens.
    """
    same = bool(process.boot) and (process.boot, process.namespace) == host()
    return same and is_own_address(address)


def has_ended(process: Process, address: str) -> bool:
    """Return whether the kernel shows that a process of this host has ended.

    False proves nothing. True proves the end only of a process that ``is_running`` has shown
    before: a clone of this host may have this host's addresses in its own table of names.

    Args:
        process: what the process has said about itself.
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
    start = _start(process.pid)
    return start is not None and start != process.start


def _start(pid: int) -> int | None:
    """Return when a process was started, in ticks since boot.

    0 if it has ended and its parent has not waited for it, None if the time cannot be read.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    # The first thread may have ended before the process's other threads.
    ended = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return 0 if ended else int(fields[19])


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
    """Return whether an address is on this host and no process listens at it.

    False proves nothing. The kernel may forward connections to other hosts, such as containers,
    without a socket that listens here. Therefore True is evidence only about this host's processes.

    Args:
        host: an IP address.
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
