"""Connections between machines that break during training.

TCP connections are resumed, and no step is lost. A process that dies there is still named at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache

import pytest

from harness import netns
from harness.cluster import Cluster
from harness.marks import needs_namespaces
from scripts import SCRIPTS

pytestmark = needs_namespaces

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")
TRAIN = SCRIPTS / "broken_connections.py"
_SYS_PIDFD_GETFD = 438
_ESTABLISHED = "01"


def sockets(pid: int) -> Iterator[int]:
    """Return the descriptors of a process's TCP connections with other machines."""
    inodes = set()
    with open(f"/proc/{pid}/net/tcp") as table:
        for line in list(table)[1:]:
            _, local, remote, state, *_, inode = line.split()[:10]
            if state == _ESTABLISHED and local.split(":")[0] != remote.split(":")[0]:
                inodes.add(f"socket:[{inode}]")
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{name}") in inodes:
                yield int(name)
        except FileNotFoundError:  # closed meanwhile
            pass


def reset_connections(pid: int) -> int:
    """Reset a process's TCP connections with other machines in the kernel, as `ss --kill` does
    where the kernel supports it: both ends see a reset. Return how many there were."""
    libc = ctypes.CDLL(None, use_errno=True)
    unspecified = bytes(16)  # a sockaddr of the family AF_UNSPEC dissolves a connection
    count = 0
    process = os.pidfd_open(pid)
    try:
        for number in sockets(pid):
            own = libc.syscall(_SYS_PIDFD_GETFD, process, number, 0)
            if own < 0:
                continue
            with socket.socket(fileno=own) as connection:
                libc.connect(connection.fileno(), unspecified, len(unspecified))
                count += 1
    finally:
        os.close(process)
    return count


def pids(network: netns.ShapedNetwork, node: int) -> list[int]:
    """Return the processes on a node."""
    command = ["ip", "netns", "pids", network.namespace(node)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return [int(pid) for pid in done.stdout.split()]


def train(env: dict[str, str], breaks: bool, steps: int) -> list[str]:
    """Train with two workers and a server, each on a separate machine.

    Return the last line of each worker, a digest of all its sums.
    """
    with (
        netns.ShapedNetwork(3, rate=None) as network,
        Cluster(
            TRAIN,
            workers=2,
            servers=1,
            server_command=SERVER,
            network=network,
            env={"STEPS": str(steps), **env},
        ) as job,
    ):
        for rank in range(2):
            job.wait_for(f"worker {rank}", "running", timeout=60)
        broken = 0
        while breaks and len(job.running()) == 4 and broken < 30:
            for node in (1, 2, 0):
                time.sleep(0.1)
                for pid in pids(network, node):
                    try:
                        broken += reset_connections(pid)
                    except (FileNotFoundError, ProcessLookupError):  # it has ended
                        pass
                # The last steps are undisturbed.
                if "digest" in job.output("worker 0"):
                    break
        results = job.wait(120)
    wrong = [f"{r.name}: {r.output[-500:]}" for r in results if r.returncode]
    assert wrong == []
    outputs = [r.output for r in results if r.name.startswith("worker")]
    if breaks:
        assert broken >= 10
        counts = [int(output.split("\nresumed ")[1].split()[0]) for output in outputs]
        assert all(count > 2 for count in counts), counts
        assert "resumed the connection with" in outputs[0]
    return [output.strip().splitlines()[-1] for output in outputs]


@cache
def undisturbed() -> list[str]:
    """Return the digests of a job whose connections do not break."""
    digests = train({}, breaks=False, steps=200)
    assert digests[0] == digests[1] != ""
    return digests


@pytest.mark.slow
@pytest.mark.parametrize("env", [{}, {"HIPRESS_TLS": "off"}, {"HIPRESS_STREAMS": "3"}], ids=str)
def test_connections_that_break_cost_no_step_and_no_bit(env):
    """Connections that are reset 10 to 30 times cost no step and no bit, with TLS, without it,
    and with several sockets.

    Cost: Each node's connections must resume several times during 200 steps.
    """
    assert train(env, breaks=True, steps=200) == undisturbed()


def test_a_worker_killed_on_another_machine_is_named_at_once():
    with (
        netns.ShapedNetwork(3, rate=None) as network,
        Cluster(
            TRAIN,
            workers=2,
            servers=1,
            server_command=SERVER,
            network=network,
            env={"STEPS": "100000", "HIPRESS_HEARTBEAT_TIMEOUT_MS": "30000"},
        ) as job,
    ):
        for rank in range(2):
            job.wait_for(f"worker {rank}", "running", timeout=60)
        for pid in pids(network, 2):
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        while "worker 1" not in job.output("worker 0"):
            assert time.monotonic() - began < 15, job.output("worker 0")
            time.sleep(0.01)
        assert "died" in job.output("worker 0")
        job.wait(30)
