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
# Pinned, as it has no releases: the nightly build for which the benchmarks were written.
WHEELS = ["torchft-nightly==2026.10.26", "opentelemetry-exporter-otlp-proto-http"]


def install() -> None:
    """Put the wheels into FOLDER, unless they are there."""
    if (FOLDER / "torchft").is_dir():
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(FOLDER)]
    # Without dependencies, as PyTorch is one; then those that are not here.
    subprocess.run([*pip, "--no-deps", WHEELS[0]], check=True)
    subprocess.run([*pip, *WHEELS[1:]], check=True)


def manager(host: str, name: str, members: int, seconds: float, **options: Any) -> Manager:
    """Make the manager of a replica group of one process, with an uncompressed Gloo group.

    :param host: this process's address, by which the others reach it
    :param members: replica groups, at least
    :param seconds: limit of each operation
    :param options: further ones of torchft's Manager
    """
    _import()
    # By this name torchft has the others connect, and all namespaces share the machine's.
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
    made.store_of_its_own = store  # which ends with its object
    return made


def lighthouse(host: str) -> str:
    """Start torchft's coordinator in the first rank's process, once; return its address.

    Called by all ranks of the default process group.

    :param host: this process's address
    """
    _import()
    import torch.distributed as dist
    from torchft.coordination import LighthouseServer

    from hipress.base.checked import typed
    from hipress.torch import exchange

    where = ""
    if dist.get_rank() == 0:
        _servers.append(server := LighthouseServer(f"{host}:0", dist.get_world_size()))
        port = server.address().rpartition(":")[2]  # behind the machine's name
        where = f"http://{host}:{port}"
    return exchange.broadcast(None, where, "addresses", lambda found: typed(found, str, "address"))


_servers: list[object] = []
"""They end with their objects."""


def _import() -> None:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
