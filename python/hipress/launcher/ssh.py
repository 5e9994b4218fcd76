"""Processes on other hosts, each through one ssh connection that it does not outlive."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from .errors import LaunchError
from .hostfile import Host, is_loopback, place, resolve
from .job import SCHEDULER, SERVER, WORKER, Job, carried_environment
from .local import local_task
from .runner import SUPERVISOR, Task

# Reads the supervisor's length and text from the connection and becomes the supervisor. Single
# quotes and one line, so that every login shell passes it on unchanged.
BOOTSTRAP = (
    "exec python3 -c '"
    "import os;"
    'r=lambda n,s=b"":s if len(s)==n else r(n,s+(os.read(0,n-len(s)) or exit(1)));'
    "exec(r(int(r(8))))'"
)


def ssh_command(ssh: str, host: Host) -> list[str]:
    """The ssh command up to the remote command: no questions asked, dead peers noticed."""
    command = [*shlex.split(ssh), "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20",
               "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return [*command, host.name]


def node_host(host: Host, hosts: list[Host]) -> str | None:
    """The address at which a host's processes should listen, or None to let them find out.

    A name that means loopback here (Debian writes the own host name so) says nothing to others.
    """
    address = resolve(host.address)
    if address is None or not is_loopback(address):
        return address
    addresses = [resolve(other.address) for other in hosts]
    return address if all(one and is_loopback(one) for one in addresses) else None


def tasks(job: Job, hosts: list[Host], directory: str, ssh: str = "ssh") -> list[Task]:
    """The scheduler here; servers and workers on the hosts, in their order, slots filled first."""
    source = SUPERVISOR.read_bytes()
    preamble = b"%08d" % len(source) + source
    where = {
        SERVER: place(hosts, job.num_servers),
        WORKER: place(hosts, job.num_workers),
    }
    found = [local_task(job, rank) for rank in job.ranks() if rank.role == SCHEDULER]
    for rank in job.distributed_ranks():
        host = where[rank.role][rank.index]
        env = {**carried_environment(), **job.environment(rank, node_host(host, hosts))}
        found.append(Task(
            name=str(rank),
            role=rank.role,
            spec={"argv": job.argv(rank), "env": env, "cwd": directory},
            via=[*ssh_command(ssh, host), BOOTSTRAP],
            preamble=preamble,
            where=host.name,
        ))
    return found


def sync_directory(hosts: list[Host], target: str, ssh: str = "ssh") -> None:
    """Copies the working directory to every host; what only the host has stays.

    Raises:
        LaunchError: rsync is missing or fails.
    """
    if shutil.which("rsync") is None:
        raise LaunchError("--sync-dst-dir needs rsync, which is not installed here")
    for host in dict.fromkeys(Host(host.name, host.port) for host in hosts):
        shell = shlex.join(ssh_command(ssh, host)[:-1])
        name = f"[{host.name}]" if ":" in host.name else host.name
        command = ["rsync", "-az", "-e", shell, "--", os.getcwd() + "/", f"{name}:{target}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])
            raise LaunchError(f"copying to {host.name}:{target} failed: {' / '.join(last[-3:])}")
