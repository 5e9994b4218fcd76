"""Listening addresses: a job on one machine uses its loopback interface only."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.launch import Launch, launched
from harness.processes import base_environment
from harness.torch_job import TorchJob

HERE = Path(__file__).parents[1]
LISTEN = "0A"  # TCP_LISTEN of the kernel's tcp_states.h
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def listeners(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Return the addresses and ports at which these processes listen."""
    inodes = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(entry))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                # 32-bit words in the machine's byte order
                words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
                packed = struct.pack(f"={len(words)}I", *words)
                family = socket.AF_INET if table == "tcp" else socket.AF_INET6
                found.add((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def is_loopback(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def test_listeners_are_found() -> None:
    with (
        socket.create_server(("0.0.0.0", 0)) as one,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
    ):
        ports = [each.getsockname()[1] for each in (one, other)]
        assert {("0.0.0.0", ports[0]), ("::1", ports[1])} <= listeners([os.getpid()])


def program(kind: str) -> list[str]:
    return [sys.executable, str(HERE / "wire_jobs" / f"{kind}.py")]


def environment() -> dict[str, str]:
    env = base_environment({"PAUSE": "1"})
    env["PYTHONPATH"] += f":{HERE}"
    return env


def listeners_of(launch: Launch) -> set[tuple[str, int]]:
    """Wait until a launcher's two workers have trained; return where its processes listen."""
    launch.read_lines(2, "has trained")
    return listeners([launch.process.pid, *launch.processes()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("mxnet_store", ["-n", "2", "-s", "1", "--hipress"]),
        ("serverless", ["-n", "2", "-s", "0", "--env", "HIPRESS_TOPOLOGY=colocated"]),
        pytest.param("torch_elastic", ["--elastic", "-n", "2"], marks=needs_torch),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_launched_job_listens_on_loopback_only(
    tmp_path: Path, kind: str, options: list[str]
) -> None:
    with launched([*options, *program(kind)], env=environment(), cwd=tmp_path) as launch:
        found = listeners_of(launch)
        (tmp_path / "end").touch()
        assert launch.finish(60) == 0, launch.err
    assert found
    assert [each for each in found if not is_loopback(each[0])] == []


@needs_torch
def test_ranks_of_torch_listen_on_loopback_only() -> None:
    """Ranks of PyTorch listen on loopback only, except the store that PyTorch itself opens on rank
    0, at MASTER_PORT."""
    with TorchJob(program("torch_ddp"), 2, environment()) as job:
        for rank in range(2):
            job.wait_for(f"rank {rank}", "has trained", 60)
        found = listeners(process.pid for process in job.processes.values())
        (job.path / "end").touch()
        port = int(job.wait(60, succeed=True)[0].output.partition("store at port ")[2].split()[0])
    others = {each for each in found if each[1] != port}
    assert others
    assert [each for each in others if not is_loopback(each[0])] == []
