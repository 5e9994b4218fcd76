"""Detection of ranks of a process group that share a host."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import torch.distributed as dist

from hipress.base.checked import typed
from hipress.torch import exchange


def this_host() -> str:
    """Return a text that is equal in processes that share a kernel and its network interfaces.

    These are the processes of one host, except containers with separate networks. If Linux does not
    provide the text, each process has a different one.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/net').st_ino}"
    except OSError:  # a sandbox may hide /proc
        return f"{socket.gethostname()} {os.getpid()}"


def ranks_per_host(group: dist.ProcessGroup) -> int:
    """Return the number of consecutive ranks on each host.

    It is 1 if there is one host, or if the ranks of a host are not consecutive. It is also 1 if
    hosts have different numbers, except that the last one may have fewer. All ranks of the group
    call this together.
    """
    return block_length(
        exchange.gather(group, this_host(), "host names", lambda host: typed(host, str, "host"))
    )


def block_length(hosts: Sequence[str]) -> int:
    """See :func:`ranks_per_host`.

    >>> block_length(["a", "a", "b", "b", "c"])
    2
    >>> block_length(["a", "b", "a", "b"])
    1
    """
    length = next((i for i, host in enumerate(hosts) if host != hosts[0]), 0)
    blocks = [hosts[i : i + length] for i in range(0, len(hosts), length)] if length else []
    together = all(len(set(block)) == 1 for block in blocks)
    return length if together and len({block[0] for block in blocks}) == len(blocks) > 1 else 1
