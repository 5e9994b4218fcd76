"""Tasks for a job's processes: on this machine, or on hosts through a command for each."""

from __future__ import annotations

import os
from collections.abc import Callable

from hipress.base.addresses import is_loopback, resolve

from .hostfile import Host, place
from .job import SCHEDULER, SERVER, WORKER, Job, Rank, Task, carried_environment


def local_task(
    job: Job, rank: Rank, env: dict[str, str] | None = None, node_host: str | None = None
) -> Task:
    """Return the task of a process here, in the current directory."""
    merged = {**(env or {}), **job.environment(rank, node_host)}
    return Task(str(rank), rank.role, {"argv": job.argv(rank), "env": merged, "cwd": os.getcwd()})


def local_tasks(job: Job) -> list[Task]:
    """Return tasks for all processes here, on the loopback interface unless one is named.

    Without OMP_NUM_THREADS every process would use all cores, so each worker gets its share.
    """
    env = {}
    if "OMP_NUM_THREADS" not in os.environ:
        env["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // job.num_workers))
    node_host = job.root_uri if job.interface is None else None
    return [local_task(job, rank, env, node_host) for rank in job.ranks()]


def remote_tasks(
    job: Job,
    hosts: list[Host],
    directory: str,
    via: Callable[[Host], list[str]],
    **options: bool,
) -> list[Task]:
    """Return tasks for the scheduler here, and for servers and workers on hosts in their order.

    Args:
        via: Returns the command that runs BOOTSTRAP on a host, with this process's pipe as input.
        options: Fields of the tasks on hosts, by name.
    """
    hosts_of = {
        SERVER: place(hosts, job.num_servers),
        WORKER: place(hosts, job.num_workers),
    }
    found = [local_task(job, rank) for rank in job.ranks() if rank.role == SCHEDULER]
    for rank in job.distributed_ranks():
        host = hosts_of[rank.role][rank.index]
        env = {**carried_environment(), **job.environment(rank, node_host(host, hosts))}
        spec = {"argv": job.argv(rank), "env": env, "cwd": directory}
        found.append(Task(str(rank), rank.role, spec, via(host), host.name, **options))
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
