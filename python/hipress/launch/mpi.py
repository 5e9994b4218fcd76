"""Servers and workers through mpirun (Open MPI or MPICH's Hydra) or srun (Slurm).

The scheduler runs here. What the processes need, the secret among it, reaches their supervisors on
standard input. srun sends its standard input to all processes that it starts, so one srun starts
all servers and workers. mpirun sends it to rank 0 only. Hydra has no option for more, and with Open
MPI 4.1's ``--stdin all`` every process gets an end of file. So the launcher starts an mpirun for
each process, which is its rank 0.

In an elastic job it also starts an srun for each worker, because srun ends all processes when one
dies.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hipress.base import files

from .bootstrap import BOOTSTRAP
from .errors import LaunchError
from .hostfile import Host, place
from .job import RANKS, SCHEDULER, SERVER, WORKER, Job, Rank, Task, carried_environment
from .placement import local_task, remote_tasks

# Ranks share cores with servers, and use threads: neither one core each nor pinning.
OPEN_MPI = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none")
SRUN = ("--export=ALL", "--cpu-bind=none", "--mpi=none")
_PLACES_SECONDS = 120.0
_PLACE = re.compile(r"hipress-place (\S+)")
_PLACE_CODE = "import socket; print('hipress-place', socket.gethostname())"


def tasks(job: Job, hosts: list[Host], directory: str, launcher: str) -> list[Task]:
    """Return the tasks that start the scheduler here and all other processes."""
    check_names(hosts, launcher)
    if launcher == "slurm":
        return _srun_tasks(job, hosts, directory)
    return remote_tasks(job, hosts, directory, mpirun_on(job))


def mpirun_on(job: Job) -> Callable[[Host], list[str]]:
    """Return a function that makes the command to start a supervisor on a host."""
    mpirun, is_open_mpi = find_mpirun()
    command = [
        mpirun,
        "-np",
        "1",
        *(OPEN_MPI if is_open_mpi else ()),
        "--host" if is_open_mpi else "-hosts",
    ]
    program = [job.python, "-I", "-S", "-c", BOOTSTRAP]
    return lambda host: [*command, host.address, *program]


def places(processes: int, python: str) -> list[Host]:
    """Return the hosts on which mpirun would start the processes, and the number on each."""
    mpirun, is_open_mpi = find_mpirun()
    command = [
        mpirun,
        "-np",
        str(processes),
        *(OPEN_MPI if is_open_mpi else ()),
        python,
        "-I",
        "-S",
        "-c",
        _PLACE_CODE,
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PLACES_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise LaunchError(
            f"mpirun has not started {processes} processes within "
            f"{_PLACES_SECONDS:g} s; -H FILE names the hosts"
        ) from error
    names = Counter(_PLACE.findall(done.stdout))
    if done.returncode != 0 or sum(names.values()) != processes:
        lines = done.stderr.strip().splitlines() or ["it wrote nothing"]
        raise LaunchError(f"mpirun cannot start {processes} processes: {' / '.join(lines[-3:])}")
    return [Host(name, slots=count) for name, count in names.items()]


def _srun_tasks(job: Job, hosts: list[Host], directory: str) -> list[Task]:
    order = ranks_by_host(job, hosts)
    command, env = srun_command(order)
    table = {
        "cwd": directory,
        "env": carried_environment(),
        "roles": {
            role: {"argv": job.argv(Rank(role, 0)), "env": job.environment(Rank(role, 0))}
            for role in (SERVER, WORKER)
        },
        "ranks": [[rank.role, rank.index] for rank, _ in order],
    }
    wrapper = [job.python, "-I", "-S", "-c", BOOTSTRAP]
    scheduler = [local_task(job, rank) for rank in job.ranks() if rank.role == SCHEDULER]
    spec = {"argv": [*command, *wrapper], "env": env, "cwd": os.getcwd()}
    return [*scheduler, Task("srun", RANKS, spec, ranks=table)]


def check_names(hosts: list[Host], launcher: str) -> None:
    """Refuse IPv6 addresses, because mpirun and srun cannot start processes on them."""
    for host in hosts:
        if ":" in host.address:
            raise LaunchError(
                f"--launcher {launcher} takes host names and IPv4 addresses: write "
                f"a name for [{host.address}], or use --launcher ssh"
            )


def ranks_by_host(job: Job, hosts: list[Host]) -> list[tuple[Rank, str]]:
    """Return (rank, host) in the order in which srun numbers processes: host by host.

    Without hosts srun places the ranks itself; the host is then empty.
    """
    ranks = job.distributed_ranks()
    if not hosts:
        return [(rank, "") for rank in ranks]
    names = [
        host.address for host in (*place(hosts, job.num_servers), *place(hosts, job.num_workers))
    ]
    first = {name: number for number, name in reversed(list(enumerate(names)))}
    return sorted(zip(ranks, names), key=lambda pair: first[pair[1]])


def find_mpirun() -> tuple[str, bool]:
    """Return mpirun's path, and whether it is Open MPI's. Otherwise it is Hydra's."""
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        raise LaunchError("--launcher mpi needs mpirun, which is not on PATH here")
    version = subprocess.run(
        [mpirun, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    ).stdout
    if "open mpi" in version.lower() or "open-mpi" in version.lower():
        return mpirun, True
    if "hydra" in version.lower() or "intel(r) mpi" in version.lower():
        return mpirun, False
    raise LaunchError(
        f"{mpirun} is neither Open MPI's nor MPICH's (Hydra); its --version says "
        f"'{version.strip().splitlines()[0] if version.strip() else 'nothing'}'"
    )


def srun_command(order: list[tuple[Rank, str]]) -> tuple[list[str], dict[str, str]]:
    """Return srun's command line up to the program, and its environment."""
    command = [
        find_slurm("srun"),
        f"--ntasks={len(order)}",
        *SRUN,
        "--kill-on-bad-exit=1",
        "--input=all",
        "--overcommit",
    ]
    hosts = [host for _, host in order]
    if not all(hosts):
        return command, {}
    counts = Counter(hosts)
    return [
        *command,
        f"--nodelist={','.join(counts)}",
        f"--nodes={len(counts)}",
        "--distribution=arbitrary",
    ], {"SLURM_HOSTFILE": hostfile_for_slurm(hosts)}


def find_slurm(name: str) -> str:
    """Return the path of one of Slurm's commands."""
    found = shutil.which(name)
    if found is None:
        raise LaunchError(f"--launcher slurm needs {name}, which is not on PATH here")
    return found


def hostfile_for_slurm(hosts: list[str]) -> str:
    """Return the path of a file with one line per rank, for ``--distribution=arbitrary``.

    The file exists until this process ends.
    """
    text = "".join(f"{host}\n" for host in hosts)
    with files.anonymous("hipress-hosts", text.encode()) as file:
        return f"/proc/{os.getpid()}/fd/{os.dup(file.fileno())}"


def elastic_tasks(job: Job, hosts: list[Host], directory: str, launcher: str) -> list[Task]:
    """Return a task with a separate mpirun or srun for each worker, which is its rank 0.

    So each worker gets the standard input of its mpirun or srun. Slurm ends the processes of a job
    step together with it.
    """
    check_names(hosts, launcher)
    if launcher == "slurm":
        # --overlap: the steps share the allocation, and none waits for another one's end.
        command = [
            find_slurm("srun"),
            "--nodes=1",
            "--ntasks=1",
            "--ntasks-per-node=1",
            "--overlap",
            *SRUN,
            "--quiet",
            "--nodelist",
        ]
        program = [job.python, "-I", "-S", "-c", BOOTSTRAP]
        return remote_tasks(
            job, hosts, directory, lambda host: [*command, host.address, *program], contained=True
        )
    found = remote_tasks(job, hosts, directory, mpirun_on(job))
    # If the launcher dies, mpirun may signal its ranks, whose commands must continue.
    return [replace(task, spec={**task.spec, "ignore_signals": True}) for task in found]


def in_allocation(hosts: list[Host], workers: int) -> list[Host]:
    """Return hosts for workers in the Slurm allocation of this process.

    Without hosts of a host file these are its nodes, with the workers spread evenly.
    """
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    if not nodes:
        raise LaunchError(
            "--elastic with --launcher slurm starts each worker as a job step of its "
            "own: run it inside an allocation, from sbatch or salloc"
        )
    if hosts:
        return hosts
    done = subprocess.run(
        [find_slurm("scontrol"), "show", "hostnames", nodes],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    names = done.stdout.split()
    if done.returncode != 0 or not names:
        raise LaunchError(f"scontrol cannot tell which nodes '{nodes}' are: {done.stderr.strip()}")
    each, more = divmod(workers, len(names))
    return [
        Host(name, slots=each + (number < more))
        for number, name in enumerate(names)
        if each or number < more
    ]
