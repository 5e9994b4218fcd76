"""Processes on other hosts, each through one ssh connection that it does not outlive."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from .bootstrap import BOOTSTRAP
from .hostfile import Host
from .launch_error import LaunchError

# Command of a login shell: in single quotes and one line, so that every shell passes it unchanged.
COMMAND = f"exec python3 -c '{BOOTSTRAP}'"

_OPTIONS = (
    "BatchMode=yes",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
)


def ssh_command(ssh: str, host: Host) -> list[str]:
    """Return the ssh command up to the remote command. It never prompts, and detects dead peers."""
    try:
        words = shlex.split(ssh)
    except ValueError as error:
        raise LaunchError(f"--ssh {ssh}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise LaunchError(f"processes on other hosts need ssh, and '{ssh}' is not on PATH here")
    command = [*words, "-T"]
    for option in _OPTIONS:
        command += ["-o", option]
    if host.port is not None:
        command += ["-p", str(host.port)]
    return [*command, host.name]


def sync_directory(hosts: list[Host], target: str, ssh: str) -> None:
    """Copy the working directory to every host; what only the host has stays."""
    if shutil.which("rsync") is None:
        raise LaunchError("--sync-dst-dir needs rsync, which is not installed here")
    for host in dict.fromkeys(Host(host.name, host.port) for host in hosts):
        shell = shlex.join(ssh_command(ssh, host)[:-1])
        user, at, address = host.name.rpartition("@")
        name = f"{user}{at}[{address}]" if ":" in address else host.name
        command = ["rsync", "-az", "-e", shell, "--", os.getcwd() + "/", f"{name}:{target}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            last = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise LaunchError(f"copying to {host.name}:{target} failed: {' / '.join(last[-3:])}")
