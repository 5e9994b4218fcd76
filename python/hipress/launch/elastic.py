"""Elastic jobs on the command line: options, invalid combinations, and the slots' addresses."""

from __future__ import annotations

import argparse
import socket

from hipress.base.addresses import behind_loopback, family_of, join

from .hostfile import Host, place
from .job import Elastic, JobSpec, free_port, node_host, port_error
from .launch_error import LaunchError

#: The agent's port of the first slot on other machines; slot i's is i higher.
PORT = 29700
DEFAULTS = {"min_workers": 1, "max_restarts": 3, "finish_timeout": 60.0}


def given(args: argparse.Namespace, *options: str) -> str | None:
    """Return the first of these options that the command line has."""
    for option in options:
        value = getattr(args, option[2:].replace("-", "_"))
        if value not in (None, []) and value is not False:
            return option
    return None


def check(args: argparse.Namespace, launcher: str) -> None:
    """Refuse options that do not go with --elastic, or without it, and set the defaults."""
    if not args.elastic:
        option = given(
            args, "--min-workers", "--max-restarts", "--finish-timeout", "--elastic-port"
        )
        if option:
            raise LaunchError(f"{option} is for elastic jobs: add --elastic")
        return
    if launcher == "mpi" and not args.hostfile:
        raise LaunchError(
            "--elastic with --launcher mpi needs a host file (-H FILE), to know each worker's "
            "address; batch systems write one, as PBS does (-H $PBS_NODEFILE)"
        )
    if args.num_servers:
        raise LaunchError(
            f"--elastic does not go with -s {args.num_servers}, since servers are "
            "not elastic yet: leave out -s, or use -s 0"
        )
    if option := given(args, "--port", "--host-ip", "--env-server", "--p3"):
        raise LaunchError(
            f"--elastic starts workers only, neither servers nor a scheduler: leave out {option}"
        )
    if option := given(args, "--topo", "--comprplan"):
        raise LaunchError(
            f"{option} is not for elastic jobs: their script says how gradients travel, beside "
            "the type of compression"
        )
    for name, value in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.num_servers = 0
    if args.min_workers > args.num_workers:
        raise LaunchError(
            f"--min-workers {args.min_workers} is more than the {args.num_workers} "
            "workers that -n starts"
        )
    last = 65536 - args.num_workers
    if args.elastic_port is not None and not 1 <= args.elastic_port <= last:
        raise LaunchError(
            f"--elastic-port must be from 1 to {last} for {args.num_workers} "
            f"workers, not {args.elastic_port}"
        )


def describe(args: argparse.Namespace, job: JobSpec, hosts: list[Host]) -> Elastic:
    """Return what the workers need to know, such as the agent address of every slot.

    Addresses are fixed before any worker starts.
    """
    if hosts:
        # The names or addresses at which all hosts reach the agents.
        known = [host.address for host in hosts]
        names = [
            node_host(host, hosts) or behind_loopback(host.address, known) or host.address
            for host in place(hosts, job.num_workers)
        ]
    else:
        names = [job.root_uri] * job.num_workers
    if args.elastic_port is None and all(map(is_here, names)):
        ports = free_ports(names)
    else:
        first = PORT if args.elastic_port is None else args.elastic_port
        ports = [first + slot for slot in range(job.num_workers)]
        for slot, (name, port) in enumerate(zip(names, ports)):
            error = None if hosts else port_error(name, port)
            if error:
                raise LaunchError(
                    f"the agent of slot {slot} cannot listen on {name} port {port}: "
                    f"{error}; leave out --elastic-port to have free ones chosen"
                )
    return Elastic([join(name, port) for name, port in zip(names, ports)], args.min_workers)


def is_here(name: str) -> bool:
    """Return whether an address belongs to this machine, so that its free ports are known here."""
    try:
        with socket.socket(family_of(name), socket.SOCK_STREAM) as probe:
            probe.bind((name, 0))
    except OSError:
        return False
    return True


def free_ports(names: list[str]) -> list[int]:
    """Return a free port for each name, all different."""
    ports: list[int] = []
    for name in names:
        port = free_port(name, "an agent")
        while port in ports:
            port = free_port(name, "an agent")
        ports.append(port)
    return ports
