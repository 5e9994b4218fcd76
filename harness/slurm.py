"""Slurm of one node on this machine, for a test: separate munged, slurmctld and slurmd."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.processes import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scontrol", "sinfo")

CONFIGURATION = """
ClusterName=hipress
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
"""


def missing() -> str:
    """Return the missing program, or that root is needed, or "" if Slurm can run."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        return f"no {', '.join(lacking)} installed"
    return "" if os.geteuid() == 0 else "only root can start a Slurm"


@contextlib.contextmanager
def running(timeout: float = 30) -> Iterator[dict[str, str]]:
    """Start Slurm and wait for its node; end its processes at the end.

    Yields the environment in which srun finds it.
    """
    with contextlib.ExitStack() as end:
        folder = Path(end.enter_context(tempfile.TemporaryDirectory(prefix="hipress-slurm-")))
        folder.chmod(0o755)
        (folder / "key").write_bytes(secrets.token_bytes(128))
        (folder / "key").chmod(0o400)
        for made in ("state", "spool"):
            (folder / made).mkdir()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                folder=folder,
                controller_port=free_port(),
                node_port=free_port(),
            )
        )
        env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        env["PATH"] = env.get("PATH", "") + ":/usr/sbin:/sbin"
        log = end.enter_context(open(folder / "programs.log", "w"))

        def start(*command: str) -> None:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            end.callback(process.wait)
            end.callback(process.kill)

        start(
            "munged",
            "--foreground",
            "--force",
            f"--socket={folder}/munge.socket",
            f"--key-file={folder}/key",
            f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed",
        )
        deadline = time.monotonic() + timeout
        while not (folder / "munge.socket").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        start("slurmctld", "-D")
        start("slurmd", "-D")
        while time.monotonic() < deadline:
            found = subprocess.run(
                ["sinfo", "--noheader", "--format=%T"],
                env=env,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
            if found.stdout.strip() == "idle":
                break
            time.sleep(0.2)
        else:
            logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
            raise AssertionError(f"no node is idle: {found.stdout}{found.stderr}\n{logs}")
        yield {"SLURM_CONF": env["SLURM_CONF"]}


@contextlib.contextmanager
def allocation(
    slurm: dict[str, str], *options: str, timeout: float = 30
) -> Iterator[dict[str, str]]:
    """Allocate a node of a running Slurm, and release it at the end.

    Yields the environment of a command inside the allocation.
    """
    code = "import json, os; print(json.dumps(dict(os.environ)), flush=True); input()"
    holder = subprocess.Popen(
        ["salloc", "--quiet", "--nodes=1", *options, sys.executable, "-S", "-c", code],
        env={**os.environ, **slurm},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        ready = select.select([holder.stdout], [], [], timeout)[0]
        assert ready, f"no allocation within {timeout} s"
        inside = json.loads(holder.stdout.readline())
        yield {name: value for name, value in inside.items() if name.startswith("SLURM_")}
    finally:
        holder.stdin.close()  # the command ends, and with it the allocation
        try:
            holder.wait(timeout)
        finally:
            holder.kill()
            holder.stdout.close()
