"""torchft, a peer of elastic training and of DiLoCo: its wheels, and replica groups of one process.

https://github.com/pytorch/torchft
"""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from harness import ROOT
from hipress.base import addresses

if TYPE_CHECKING:
    from torchft import Manager

FOLDER = ROOT / "build" / "torchft"
# Pinned to the nightly build for which the benchmarks were written, because it has no releases.
WHEELS = ["torchft-nightly==2026.10.26", "opentelemetry-exporter-otlp-proto-http"]


def install() -> None:
    """Install the wheels into FOLDER unless they exist."""
    if (FOLDER / "torchft").is_dir():
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(FOLDER)]
    # First without dependencies, which include PyTorch, then those that are missing.
    subprocess.run([*pip, "--no-deps", WHEELS[0]], check=True)
    subprocess.run([*pip, *WHEELS[1:]], check=True)


def manager(host: str, name: str, members: int, seconds: float, **options: Any) -> Manager:
    """Make the manager of a replica group of one process, with an uncompressed Gloo group.

    Args:
        host: Address by which other processes reach this one.
        members: Minimum number of replica groups.
        seconds: Limit of each operation.
        options: Further options of torchft's Manager.
    """
    _import()
    # torchft sends this name to the other processes, and all namespaces share the machine's name.
    socket.gethostname = lambda: host
    os.environ["GLOO_SOCKET_IFNAME"] = addresses.interface_with(host)
    import torch.distributed as dist
    from torchft import Manager, ProcessGroupGloo

    timeout = datetime.timedelta(seconds=seconds)
    store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False)
    made = Manager(
        pg=ProcessGroupGloo(timeout=timeout),
        min_replica_size=members,
        timeout=timeout,
        rank=0,
        world_size=1,
        store_addr=host,
        store_port=store.port,
        hostname=host,
        replica_id=f"{name}_",
        **options,
    )
    made.store_of_its_own = store  # closed when its object is deleted
    return made


def lighthouse(host: str) -> str:
    """Start torchft's coordinator in the first rank's process, once, and return its address.

    All ranks of the default process group call it.

    Args:
        host: Address of this process.
    """
    _import()
    import torch.distributed as dist
    from torchft.coordination import LighthouseServer

    from hipress.base.checked import typed
    from hipress.torch import exchange

    where = ""
    if dist.get_rank() == 0:
        _servers.append(server := LighthouseServer(f"{host}:0", dist.get_world_size()))
        port = server.address().rpartition(":")[2]  # the part after the machine's name
        where = f"http://{host}:{port}"
    return exchange.broadcast(None, where, "addresses", lambda found: typed(found, str, "address"))


_servers: list[object] = []
"""Servers, which end when their objects are deleted."""


def _import() -> None:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
