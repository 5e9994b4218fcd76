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

from hipress.base import files

from .bootstrap import python_command
from .hostfile import Host, place
from .job import (
    RANKS,
    SERVER,
    WORKER,
    JobSpec,
    LaunchTask,
    Rank,
    carried_environment,
    remote_tasks,
    scheduler_tasks,
)
from .launch_error import LaunchError

# Ranks share cores with servers, and use threads: neither one core each nor pinning.
OPEN_MPI = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none")
SRUN = ("--export=ALL", "--cpu-bind=none", "--mpi=none")
_PLACES_SECONDS = 120.0
_PLACE = re.compile(r"hipress-place (\S+)")
_PLACE_CODE = "import socket; print('hipress-place', socket.gethostname())"


def tasks(job: JobSpec, hosts: list[Host], directory: str, launcher: str) -> list[LaunchTask]:
    """Return the tasks that start the scheduler here and all other processes.

    With "mpi" there is an mpirun for each process. With "slurm" there is one srun for all, or for
    each worker of an elastic job. So each worker is rank 0 of its mpirun or srun, whose standard
    input it gets.
    """
    for host in hosts:
        if ":" in host.address:
            raise LaunchError(
                f"--launcher {launcher} takes host names and IPv4 addresses: write "
                f"a name for [{host.address}], or use --launcher ssh"
            )
    program = python_command(job.python)
    if launcher == "slurm" and job.elastic:
        # --overlap: the steps share the allocation, and none waits for another one's end.
        command = [find_slurm("srun"), "--nodes=1", "--ntasks=1", "--ntasks-per-node=1"]
        command += ["--overlap", *SRUN, "--quiet", "--nodelist"]
        # Slurm ends the processes of a job step together with it.
        return remote_tasks(
            job, hosts, directory, lambda host: [*command, host.address, *program], contained=True
        )
    if launcher == "slurm":
        return _srun_tasks(job, hosts, directory)
    mpirun, options, hosts_option = find_mpirun()
    command = [mpirun, "-np", "1", *options, hosts_option]
    found = remote_tasks(job, hosts, directory, lambda host: [*command, host.address, *program])
    if job.elastic:
        # If the launcher dies, mpirun may signal its ranks, whose commands must continue.
        for task in found:
            task.spec["ignore_signals"] = True
    return found


def places(processes: int, python: str) -> list[Host]:
    """Return the hosts on which mpirun would start the processes, and the number on each."""
    mpirun, options, _ = find_mpirun()
    command = [mpirun, "-np", str(processes), *options, *python_command(python, _PLACE_CODE)]
    try:
        done = run(command, timeout=_PLACES_SECONDS)
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


def run(command: list[str], timeout: float | None = None) -> subprocess.CompletedProcess:
    """Run a command without input, and return its output."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
    )


def _srun_tasks(job: JobSpec, hosts: list[Host], directory: str) -> list[LaunchTask]:
    order = ranks_by_host(job, hosts)
    command = [find_slurm("srun"), f"--ntasks={len(order)}", *SRUN, "--kill-on-bad-exit=1"]
    command += ["--input=all", "--overcommit"]
    env, names = {}, [name for _, name in order]
    if all(names):
        distinct = dict.fromkeys(names)
        command += [f"--nodelist={','.join(distinct)}", f"--nodes={len(distinct)}"]
        command.append("--distribution=arbitrary")
        # A line per rank, for --distribution=arbitrary. The file exists until this process ends.
        text = "".join(f"{name}\n" for name in names)
        with files.anonymous("hipress-hosts", text.encode()) as file:
            env["SLURM_HOSTFILE"] = f"/proc/{os.getpid()}/fd/{os.dup(file.fileno())}"
    table = {
        "cwd": directory,
        "env": carried_environment(),
        "roles": {
            role: {"argv": job.argv(Rank(role, 0)), "env": job.environment(Rank(role, 0))}
            for role in (SERVER, WORKER)
        },
        "ranks": [[rank.role, rank.index] for rank, _ in order],
    }
    spec = {"argv": [*command, *python_command(job.python)], "env": env, "cwd": os.getcwd()}
    return [*scheduler_tasks(job), LaunchTask("srun", RANKS, spec, ranks=table)]


def ranks_by_host(job: JobSpec, hosts: list[Host]) -> list[tuple[Rank, str]]:
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


def find_mpirun() -> tuple[str, tuple[str, ...], str]:
    """Return mpirun's path, its options, and the name of its option for hosts."""
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        raise LaunchError("--launcher mpi needs mpirun, which is not on PATH here")
    version = run([mpirun, "--version"]).stdout
    if "open mpi" in version.lower() or "open-mpi" in version.lower():
        return mpirun, OPEN_MPI, "--host"
    if "hydra" in version.lower() or "intel(r) mpi" in version.lower():
        return mpirun, (), "-hosts"
    raise LaunchError(
        f"{mpirun} is neither Open MPI's nor MPICH's (Hydra); its --version says "
        f"'{version.strip().splitlines()[0] if version.strip() else 'nothing'}'"
    )


def find_slurm(name: str) -> str:
    """Return the path of one of Slurm's commands."""
    found = shutil.which(name)
    if found is None:
        raise LaunchError(f"--launcher slurm needs {name}, which is not on PATH here")
    return found


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
    done = run([find_slurm("scontrol"), "show", "hostnames", nodes])
    names = done.stdout.split()
    if done.returncode != 0 or not names:
        raise LaunchError(f"scontrol cannot tell which nodes '{nodes}' are: {done.stderr.strip()}")
    each, more = divmod(workers, len(names))
    return [
        Host(name, slots=each + (number < more))
        for number, name in enumerate(names)
        if each or number < more
    ]
