"""Servers and workers through one mpirun (Open MPI or MPICH's Hydra) or one srun (Slurm).

The scheduler runs here. Every rank starts the supervisor, which looks its role up in a table in
the environment: variables' names go onto command lines, values (the secret!) never do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter

from .errors import LaunchError
from .hostfile import Host, place
from .job import SCHEDULER, SERVER, WORKER, Job, Rank, carried_environment
from .local import local_task
from .runner import RANKS, SUPERVISOR, Task

TABLE = "HIPRESS_LAUNCH_TABLE"


def tasks(job: Job, hosts: list[Host], directory: str, launcher: str) -> list[Task]:
    """The scheduler here, and one mpirun or srun (``launcher``: mpi, slurm) for all others.

    Raises:
        LaunchError: no mpirun or srun here, or an mpirun of an unknown kind.
    """
    order = ranks_by_host(job, hosts)
    if launcher == "mpi":
        name, command, env = "mpirun", mpirun_command(order), {}
    else:
        name, command, env = "srun", *srun_command(order)
    env[TABLE] = json.dumps({
        "cwd": directory,
        "env": carried_environment(),
        "roles": {
            role: {"argv": job.argv(Rank(role, 0)), "env": job.environment(Rank(role, 0))}
            for role in (SERVER, WORKER)
        },
        "ranks": [[rank.role, rank.index] for rank, _ in order],
    })
    wrapper = [job.python, "-I", "-S", str(SUPERVISOR)]
    scheduler = [local_task(job, rank) for rank in job.ranks() if rank.role == SCHEDULER]
    spec = {"argv": [*command, *wrapper], "env": env, "cwd": os.getcwd()}
    return [*scheduler, Task(name, RANKS, spec)]


def ranks_by_host(job: Job, hosts: list[Host]) -> list[tuple[Rank, str]]:
    """(rank, host) in the order in which mpirun numbers processes: host by host.

    Without hosts mpirun or srun places them itself; the host is then empty.
    """
    ranks = job.distributed_ranks()
    if not hosts:
        return [(rank, "") for rank in ranks]
    names = [host.address for host in (*place(hosts, job.num_servers),
                                       *place(hosts, job.num_workers))]
    first = {name: number for number, name in reversed(list(enumerate(names)))}
    return sorted(zip(ranks, names), key=lambda pair: first[pair[1]])


def mpirun_command(order: list[tuple[Rank, str]]) -> list[str]:
    """mpirun's command line up to the program.

    Raises:
        LaunchError: mpirun is missing or of an unknown kind.
    """
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        raise LaunchError("--launcher mpi needs mpirun, which is not on PATH here")
    version = subprocess.run([mpirun, "--version"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True).stdout
    counts = Counter(host for _, host in order)
    hosts = ",".join(f"{host}:{count}" for host, count in counts.items())
    number = str(len(order))
    if "open mpi" in version.lower() or "open-mpi" in version.lower():
        # Ranks share cores with servers, and use threads: neither one core each nor pinning.
        command = [mpirun, "-np", number, "--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none",
                   "-x", TABLE]
        return [*command, "--host", hosts] if "" not in counts else command
    if "hydra" in version.lower() or "intel(r) mpi" in version.lower():
        command = [mpirun, "-genvall", "-n", number]
        return [*command, "-hosts", hosts] if "" not in counts else command
    raise LaunchError(f"{mpirun} is neither Open MPI's nor MPICH's (Hydra); its --version says "
                      f"'{version.strip().splitlines()[0] if version.strip() else 'nothing'}'")


def srun_command(order: list[tuple[Rank, str]]) -> tuple[list[str], dict[str, str]]:
    """srun's command line up to the program, and its environment.

    Raises:
        LaunchError: srun is missing.
    """
    srun = shutil.which("srun")
    if srun is None:
        raise LaunchError("--launcher slurm needs srun, which is not on PATH here")
    command = [srun, f"--ntasks={len(order)}", "--export=ALL", "--kill-on-bad-exit=1",
               "--input=none", "--overcommit", "--cpu-bind=none", "--mpi=none"]
    hosts = [host for _, host in order]
    if not all(hosts):
        return command, {}
    counts = Counter(hosts)
    return [*command, f"--nodelist={','.join(counts)}", f"--nodes={len(counts)}",
            "--distribution=arbitrary"], {"SLURM_HOSTFILE": hostfile_for_slurm(hosts)}


def hostfile_for_slurm(hosts: list[str]) -> str:
    """A file with one line per rank, which ``--distribution=arbitrary`` reads: a memory file of
    this process, which goes away with it."""
    descriptor = os.memfd_create("hipress-hosts")
    os.write(descriptor, "".join(f"{host}\n" for host in hosts).encode())
    return f"/proc/{os.getpid()}/fd/{descriptor}"
