"""Which ranks of a process group share a host."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import torch.distributed as dist

from hipress.checked import typed
from hipress.torch import exchange


def this_host() -> str:
    """A text that processes have alike where they share a kernel and its network interfaces: on one
    machine, but for containers with a network of their own. Where Linux does not say so, each
    process has a text of its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/net').st_ino}"
    except OSError:  # a sandbox may hide /proc
        return f"{socket.gethostname()} {os.getpid()}"


def ranks_per_host(group: dist.ProcessGroup) -> int:
    """Consecutive ranks that share each host; 1 if hosts have different numbers of them (the last
    one may have fewer), if they do not lie together, or if there is one host. All ranks of the
    group call it together."""
    return block_length(
        exchange.gather(group, this_host(), "host names", lambda host: typed(host, str, "host"))
    )


def block_length(hosts: Sequence[str]) -> int:
    """See :func:`ranks_per_host`.

    :param hosts: of each rank

    >>> block_length(["a", "a", "b", "b", "c"])
    2
    >>> block_length(["a", "b", "a", "b"])
    1
    """
    length = next((i for i, host in enumerate(hosts) if host != hosts[0]), 0)
    blocks = [hosts[i : i + length] for i in range(0, len(hosts), length)] if length else []
    together = all(len(set(block)) == 1 for block in blocks)
    return length if together and len({block[0] for block in blocks}) == len(blocks) > 1 else 1
