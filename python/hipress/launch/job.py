"""Description of a job: its roles, and the task (host, environment, command) of each process."""

from __future__ import annotations

import os
import random
import re
import secrets
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hipress.base.addresses import family_of, is_loopback, resolve

from .hostfile import Host, place
from .launch_error import LaunchError

SCHEDULER, SERVER, WORKER = "scheduler", "server", "worker"
RANKS = "ranks"  # role of an srun, which starts all servers and workers
#: Environment that is sent to other machines, where it is not inherited.
CARRIED = (
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "OMP_NUM_THREADS",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "PYTHONUNBUFFERED",
)
CARRIED_PREFIXES = ("DMLC_", "PS_", "MXNET_", "HIPRESS_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Rank:
    """One process of the job: its role and its number within the role."""

    role: str
    index: int

    def __str__(self) -> str:
        return self.role if self.role == SCHEDULER else f"{self.role} {self.index}"


@dataclass
class LaunchTask:
    """One supervised process: here, or on another host through ``via``."""

    name: str
    role: str
    #: What the supervisor runs: argv, env (additions), cwd.
    spec: dict
    #: The command that starts the supervisor there; None: here.
    via: list[str] | None = None
    #: Name of the host for users; empty: here.
    host: str = ""
    #: Whether all that ``via`` has started ends with it.
    contained: bool = False
    #: For RANKS: a table of the processes that the command starts, each with its own supervisor.
    ranks: dict | None = None

    @property
    def means(self) -> str:
        """Name of the program that starts the supervisor: ssh, mpirun or srun."""
        return os.path.basename(self.via[0]) if self.via else ""


@dataclass(frozen=True)
class Elastic:
    """Information for the workers of an elastic job."""

    #: host:port of each slot's agent, the same for all processes of the slot.
    agents: list[str]
    min_workers: int


@dataclass
class JobSpec:
    """Job that the command line describes."""

    num_workers: int
    num_servers: int
    command: list[str]
    hipress: bool = False
    python: str = sys.executable
    interface: str | None = None
    #: Set for every role, for workers and for servers.
    env: dict[str, str] = field(default_factory=dict)
    env_worker: dict[str, str] = field(default_factory=dict)
    env_server: dict[str, str] = field(default_factory=dict)
    root_uri: str = "127.0.0.1"
    root_port: int = 0
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    elastic: Elastic | None = None

    def distributed_ranks(self) -> list[Rank]:
        """Return servers and workers, which other hosts can run."""
        servers = [Rank(SERVER, index) for index in range(self.num_servers)]
        return servers + [Rank(WORKER, index) for index in range(self.num_workers)]

    def environment(self, rank: Rank, node_host: str | None = None) -> dict[str, str]:
        """Return the environment variables of a process, in addition to those that it inherits."""
        env = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"), **self.env}
        env.update({WORKER: self.env_worker, SERVER: self.env_server}.get(rank.role, {}))
        env["HIPRESS_SECRET"] = self.secret
        if self.elastic:
            env["HIPRESS_ELASTIC_SLOT"] = str(rank.index)
            env["HIPRESS_ELASTIC_AGENTS"] = ",".join(self.elastic.agents)
            env["HIPRESS_ELASTIC_MIN_WORKERS"] = str(self.elastic.min_workers)
            env["HIPRESS_ELASTIC_RESTART"] = "0"
        else:
            env["DMLC_ROLE"] = rank.role
            env["DMLC_PS_ROOT_URI"] = self.root_uri
            env["DMLC_PS_ROOT_PORT"] = str(self.root_port)
            env["DMLC_NUM_WORKER"] = str(self.num_workers)
            env["DMLC_NUM_SERVER"] = str(self.num_servers)
            if self.hipress:
                env["HIPRESS_LAUNCHED"] = "1"
            if rank.role != SCHEDULER:
                env[f"DMLC_{rank.role.upper()}_ID"] = str(rank.index)
        if self.interface:
            env["DMLC_INTERFACE"] = self.interface
        elif node_host:
            env["DMLC_NODE_HOST"] = node_host
        return with_source_tree(env)

    def argv(self, rank: Rank) -> list[str]:
        """Return the command of a process."""
        if not self.hipress:
            return self.command
        interpreter, arguments = split_script(self.command, self.python)
        if rank.role == WORKER:
            return [*interpreter, "-m", "mxnet_hipress", *arguments]
        return [*interpreter, "-m", "mxnet_hipress.boot"]


def with_source_tree(env: dict[str, str]) -> dict[str, str]:
    """Put this package on PYTHONPATH if it runs from its source tree, without installation."""
    package_root = Path(__file__).resolve().parents[2]
    if (package_root.parent / "pyproject.toml").exists():
        before = env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        entries = [entry for entry in before.split(os.pathsep) if entry]
        if str(package_root) not in entries:
            env["PYTHONPATH"] = os.pathsep.join([str(package_root), *entries])
    return env


def split_script(command: list[str], python: str) -> tuple[list[str], list[str]]:
    """Split a command into the interpreter with its options, and the script with its arguments."""
    if command[0].endswith(".py"):
        return [python], command
    if re.fullmatch(r"(pypy|python)[0-9.]*", os.path.basename(command[0])) is None:
        raise LaunchError(
            f"--hipress runs Python scripts: 'SCRIPT.py ...' or 'python SCRIPT.py ...', "
            f"not '{' '.join(command)}'"
        )
    position = 1
    while position < len(command) and command[position].startswith("-"):
        option = command[position]
        if option == "-m":
            break
        if option.startswith("-c") or option == "-":
            raise LaunchError("--hipress needs a script or a module (-m), not 'python -c ...'")
        position += 2 if option in ("-W", "-X") else 1
    if position >= len(command):
        raise LaunchError(f"--hipress needs a script after '{' '.join(command)}'")
    return command[:position], command[position:]


def check_script(command: list[str], python: str) -> None:
    """Raise LaunchError if the script that --hipress is to run is not here."""
    script = split_script(command, python)[1][0]
    if script != "-m" and not os.path.exists(script):
        raise LaunchError(f"there is no script {script} here to run")


def parse_pairs(option: str, pairs: list[str]) -> dict[str, str]:
    """Return the environment from ``KEY:VALUE`` (MXNet's form) or ``KEY=VALUE``."""
    env = {}
    for pair in pairs:
        match = re.fullmatch(r"([^:=]*)[:=](.*)", pair, re.DOTALL)
        if match is None or _NAME.fullmatch(match[1]) is None:
            raise LaunchError(f"{option} takes KEY:VALUE or KEY=VALUE, not '{pair}'")
        env[match[1]] = match[2]
    return env


def parse_env(values: list[str]) -> dict[str, str]:
    """Return the environment from ``--env``: ``KEY=VALUE``, or a name whose value is here."""
    env = {}
    for value in values:
        name = value.strip()
        if _NAME.fullmatch(name) is None:
            env.update(parse_pairs("--env", [value]))
        elif name in os.environ:
            env[name] = os.environ[name]
        else:
            raise LaunchError(
                f"--env {name}: that variable is not set here; set it or write --env {name}=VALUE"
            )
    return env


def carried_environment() -> dict[str, str]:
    """Return the part of this process's environment that is passed to other machines."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in CARRIED or name.startswith(CARRIED_PREFIXES)
    }


def free_port(address: str, who: str = "the scheduler") -> int:
    """Return an unused TCP port at ``address``.

    It is below the range of outgoing connections, so that no outgoing connection occupies it before
    ``who`` does.
    """
    error = None
    for _ in range(200):
        port = random.SystemRandom().randrange(10000, 32768)
        error = port_error(address, port)
        if not error:
            return port
    raise LaunchError(f"{who} can listen on no TCP port at {address}: {error}")


def port_error(address: str, port: int) -> str | None:
    """Return why a socket cannot be bound to an address of this machine, or None if it can."""
    with socket.socket(family_of(address), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            return str(error.strerror)
    return None


def local_task(
    job: JobSpec, rank: Rank, env: dict[str, str] | None = None, node_host: str | None = None
) -> LaunchTask:
    """Return the task of a process here, in the current directory."""
    merged = {**(env or {}), **job.environment(rank, node_host)}
    return LaunchTask(
        str(rank), rank.role, {"argv": job.argv(rank), "env": merged, "cwd": os.getcwd()}
    )


def local_tasks(job: JobSpec) -> list[LaunchTask]:
    """Return tasks for all processes here, on the loopback interface unless one is named.

    Without OMP_NUM_THREADS every process would use all cores, so each worker gets its share.
    """
    env = {}
    if "OMP_NUM_THREADS" not in os.environ:
        env["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // job.num_workers))
    node_host = job.root_uri if job.interface is None else None
    schedulers = [] if job.elastic else [Rank(SCHEDULER, 0)]
    ranks = [*schedulers, *job.distributed_ranks()]
    return [local_task(job, rank, env, node_host) for rank in ranks]


def scheduler_tasks(job: JobSpec) -> list[LaunchTask]:
    """Return the task of the scheduler here, if the job has one."""
    return [] if job.elastic else [local_task(job, Rank(SCHEDULER, 0))]


def remote_tasks(
    job: JobSpec,
    hosts: list[Host],
    directory: str,
    via: Callable[[Host], list[str]],
    **options: bool,
) -> list[LaunchTask]:
    """Return tasks for the scheduler here, and for servers and workers on hosts in their order.

    ``via`` returns the command that runs BOOTSTRAP on a host, with this process's pipe as input.
    ``options`` are fields of the tasks on hosts.
    """
    hosts_of = {SERVER: place(hosts, job.num_servers), WORKER: place(hosts, job.num_workers)}
    found = scheduler_tasks(job)
    for rank in job.distributed_ranks():
        host = hosts_of[rank.role][rank.index]
        env = {**carried_environment(), **job.environment(rank, node_host(host, hosts))}
        spec = {"argv": job.argv(rank), "env": env, "cwd": directory}
        found.append(LaunchTask(str(rank), rank.role, spec, via(host), host.name, **options))
    return found


def node_host(host: Host, hosts: list[Host]) -> str | None:
    """Return the address at which a host's processes should listen, or None to let them find out.

    A name that means loopback here is of no use to other hosts. Debian writes the own host name so.
    """
    address = resolve(host.address)
    if address is None or not is_loopback(address):
        return address
    addresses = [resolve(other.address) for other in hosts]
    return address if all(one and is_loopback(one) for one in addresses) else None
