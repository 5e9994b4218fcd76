"""Processes on other hosts, each through a command of its own that starts its supervisor there."""

from __future__ import annotations

from collections.abc import Callable

from hipress.addresses import is_loopback, resolve

from .hostfile import Host, place
from .job import SCHEDULER, SERVER, WORKER, Job, carried_environment
from .local import local_task
from .runner import Task


def tasks(
    job: Job,
    hosts: list[Host],
    directory: str,
    via: Callable[[Host], list[str]],
    contained: bool = False,
) -> list[Task]:
    """The scheduler here; servers and workers on the hosts, in their order, slots filled first.

    :param via: the command that runs BOOTSTRAP on a host, with this process's pipe as its input
    :param contained: as Task's
    """
    where = {
        SERVER: place(hosts, job.num_servers),
        WORKER: place(hosts, job.num_workers),
    }
    found = [local_task(job, rank) for rank in job.ranks() if rank.role == SCHEDULER]
    for rank in job.distributed_ranks():
        host = where[rank.role][rank.index]
        env = {**carried_environment(), **job.environment(rank, node_host(host, hosts))}
        found.append(
            Task(
                name=str(rank),
                role=rank.role,
                spec={"argv": job.argv(rank), "env": env, "cwd": directory},
                via=via(host),
                where=host.name,
                contained=contained,
            )
        )
    return found


def node_host(host: Host, hosts: list[Host]) -> str | None:
    """The address at which a host's processes should listen, or None to let them find out.

    A name that means loopback here (Debian writes the own host name so) says nothing to others.
    """
    address = resolve(host.address)
    if address is None or not is_loopback(address):
        return address
    addresses = [resolve(other.address) for other in hosts]
    return address if all(one and is_loopback(one) for one in addresses) else None
