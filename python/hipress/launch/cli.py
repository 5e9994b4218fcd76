"""Command line of ``hipress launch``, ``hipress-launch`` and ``tools/launch.py``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hipress.base.addresses import (
    LINK_LOCAL,
    is_link_local,
    is_loopback,
    of_interface,
    of_this_machine,
    resolve,
    towards,
    without_brackets,
)
from hipress.topology import topologies

from . import elastic, mpi, ssh
from .failures import StopAtFailure
from .hostfile import Host, read_hostfile, workers_per_host
from .job import (
    JobSpec,
    LaunchTask,
    check_script,
    free_port,
    local_tasks,
    parse_env,
    parse_pairs,
    port_error,
    remote_tasks,
)
from .launch_error import LaunchError
from .output import Printer
from .restarts import RestartWorkers, Rules
from .runner import Policy, Runner

LAUNCHERS = ("local", "ssh", "mpi", "slurm")
DESCRIPTION = """\
Start a distributed job: one scheduler (here), servers and workers.

Every process runs COMMAND with its role in the environment (DMLC_ROLE, DMLC_PS_ROOT_URI,
DMLC_PS_ROOT_PORT, DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_WORKER_ID or DMLC_SERVER_ID), as
MXNet's launch.py does; with --hipress, COMMAND is an unmodified MXNet script that only the workers
run. Output comes line by line with the process's name before it. If a process dies, the job is
stopped, the process is named and its exit status (128 + signal number) becomes this command's.

With --elastic a worker that dies is started again, and the others go on meanwhile. There are only
workers, in slots 0 to N-1 (HIPRESS_ELASTIC_SLOT, HIPRESS_ELASTIC_AGENTS, ...): here, over ssh, or
each by an mpirun (with a host file) or a Slurm job step (in an allocation) of its own. They also
survive a kill -9 of this command and (not in Slurm) of their supervisors; Ctrl-C ends all of them:

    hipress launch --elastic --min-workers 2 --max-restarts 3 -n 4 python train.py
"""


def make_parser(prog: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the options, including MXNet's own."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=DESCRIPTION,
        allow_abbrev=False,
        usage="%(prog)s -n WORKERS [options] [--] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(names: str, help: str, **more: object) -> None:
        """Add an option; after its names comes the name of its value, if it has one."""
        *flags, last = names.split()
        if last.startswith("-"):
            parser.add_argument(*flags, last, action="store_true", help=help)
        else:
            parser.add_argument(*flags, metavar=last, help=help, **more)

    served = topologies.either(topologies.names(servers=True))
    serverless = ", ".join(topologies.names(servers=False))
    known = topologies.TOPOLOGIES.values()
    per_host = topologies.either(t.name for t in known if t.needs_devices_per_host)
    add("-n --num-workers N", "number of workers", type=_count, required=True)
    add(
        "-s --num-servers N",
        "number of servers (default: as many as workers; none if --topo needs none)",
        type=_count_or_none,
    )
    add(
        "--topo NAME",
        f"how gradients travel: {served}, or without servers {serverless} (HIPRESS_TOPOLOGY; "
        "docs/concepts/casync.md)",
    )
    add(
        "--devices-per-host N",
        f"for --topo {per_host}: consecutive workers on each host (default: from the hosts' "
        "slots; without a host file all workers are on one)",
        type=_count,
    )
    add(
        "--comprplan FILE",
        "which gradients to compress, and how to cut them: a SeCoPaPlan.txt, or auto "
        "(HIPRESS_PLAN)",
    )
    add(
        "-H --hostfile --host-file FILE",
        "hosts for servers and workers, one a line: host, host:ssh-port, user@host, each with "
        "slots=N after it if wanted (processes of a role before the next host's turn); an IPv6 "
        "address in brackets: [2001:db8::1]",
    )
    add(
        f"--launcher --cluster {{{','.join(LAUNCHERS)}}}",
        "how to start processes (default: ssh with a host file, otherwise local)",
    )
    add(
        "--hipress",
        "run an unmodified MXNet script with HiPress's kvstore: workers run the script, "
        "servers and the scheduler run HiPress's own",
    )
    several = {"action": "append", "default": []}
    add(
        "--env NAME|KEY=VALUE",
        "set a variable for all processes; a NAME takes its value from here",
        **several,
    )
    add("--env-worker KEY:VALUE", "set a variable for workers", **several)
    add("--env-server KEY:VALUE", "set a variable for servers", **several)
    add(
        "--sync-dst-dir DIR",
        "first copy the working directory to DIR on every host (rsync), and run there",
    )
    add("-i --interface NAME", "network interface to use (DMLC_INTERFACE)")
    add("-p --port PORT", "the scheduler's port (default: a free one)", type=int)
    add(
        "--host-ip ADDRESS",
        "the scheduler's address, should the one found not be reachable from the hosts",
    )
    add(
        "--timeout SECONDS",
        "stop the job, with status 124, if it has not ended by then",
        type=_seconds,
    )
    add(
        "--grace SECONDS",
        "from SIGTERM to SIGKILL when the job is stopped (default: %(default)g)",
        type=_seconds,
        default=5.0,
    )
    add(
        "--python PATH",
        "the Python of --hipress's own processes (default: this one)",
        default=sys.executable,
    )
    add(
        "--ssh COMMAND",
        "ssh with options of yours (default: $HIPRESS_SSH, or ssh)",
        default=os.environ.get("HIPRESS_SSH", "ssh"),
    )
    add("--p3", "MXNet's own P3 scheduling (DMLC_PS_VAN_TYPE=p3), for its own kvstore only")
    add("--elastic", "workers only, each in a slot, and each started again when it dies")
    add(
        "--min-workers M",
        "with --elastic: fewer than M slots that could still run end the job "
        f"(default: {elastic.DEFAULTS['min_workers']})",
        type=_count,
    )
    add(
        "--max-restarts R",
        "with --elastic: how often a slot's worker is started again, in all "
        f"(default: {elastic.DEFAULTS['max_restarts']})",
        type=_count_or_none,
    )
    add(
        "--finish-timeout SECONDS",
        "with --elastic: when one worker has ended with 0, the others have so long to do so "
        f"(default: {elastic.DEFAULTS['finish_timeout']:g})",
        type=_seconds,
    )
    add(
        "--elastic-port PORT",
        "with --elastic: slot i's agent listens on PORT + i (default: free ports on this "
        f"machine, {elastic.PORT} + i on others; two jobs on the same hosts need different ones)",
        type=int,
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="what to run, with its arguments. Here OMP_NUM_THREADS, if unset, becomes cores / "
        "workers, but at least 1",
    )
    return parser


def _count_or_none(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} up")
    return int(text)


def _count(text: str) -> int:
    return _count_or_none(text, 1)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return seconds


def make_tasks(args: argparse.Namespace) -> list[LaunchTask]:
    """Make the processes' descriptions from the parsed command line."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise LaunchError("no command to run; for example: -n 2 python train.py")
    launcher = args.launcher or ("ssh" if args.hostfile else "local")
    if launcher not in LAUNCHERS:
        raise LaunchError(f"--launcher {launcher} is not supported; use {', '.join(LAUNCHERS)}")
    if launcher == "local" and args.hostfile:
        raise LaunchError(
            "--launcher local starts everything here: leave out --hostfile, or use --launcher ssh"
        )
    if launcher == "ssh" and not args.hostfile:
        raise LaunchError("--launcher ssh needs a host file (-H FILE)")
    if args.sync_dst_dir and not args.hostfile:
        raise LaunchError("--sync-dst-dir needs a host file (-H FILE) to know where to copy to")
    elastic.check(args, launcher)
    hosts = read_hostfile(args.hostfile) if args.hostfile else []
    if args.elastic and launcher == "slurm":
        hosts = mpi.in_allocation(hosts, args.num_workers)
    topology, num_servers = choose_topology(args)
    if launcher == "mpi" and not hosts:
        hosts = mpi.places(max(args.num_workers, num_servers), args.python)
    env = parse_env(args.env)
    by_host = launcher in ("ssh", "mpi") or args.elastic and launcher != "local"
    if by_host and not args.interface:
        # Otherwise each process would get its host's address, which precedes its interface.
        args.interface = env.get("DMLC_INTERFACE", os.environ.get("DMLC_INTERFACE"))
    job = JobSpec(
        num_workers=args.num_workers,
        num_servers=num_servers,
        command=command,
        hipress=args.hipress,
        python=args.python,
        interface=args.interface,
        env=env,
        env_worker=parse_pairs("--env-worker", args.env_worker),
        env_server=parse_pairs("--env-server", args.env_server),
        # This machine, which may have other interfaces, takes no part in an elastic job on hosts.
        root_uri="" if args.elastic and hosts else root_address(args, launcher, hosts),
    )
    job.env.update(travel_environment(args, topology, hosts))
    if args.p3:
        job.env.update(DMLC_PS_VAN_TYPE="p3", DMLC_PS_WATER_MARK="10")
    if args.elastic:
        job.elastic = elastic.describe(args, job, hosts)
    elif args.port is None:
        job.root_port = free_port(job.root_uri)
    elif 1 <= args.port <= 65535:
        job.root_port = args.port
        error = port_error(job.root_uri, args.port)
        if error:
            raise LaunchError(
                f"the scheduler cannot listen on {job.root_uri} port {args.port}: {error}; "
                f"leave out --port to have a free one chosen"
            )
    else:
        raise LaunchError(f"--port must be from 1 to 65535, not {args.port}")
    if launcher == "local":
        if args.hipress:
            check_script(command, args.python)
        return local_tasks(job)
    directory = args.sync_dst_dir or os.getcwd()
    if launcher == "ssh":
        found = remote_tasks(
            job, hosts, directory, lambda host: [*ssh.ssh_command(args.ssh, host), ssh.COMMAND]
        )
    else:
        found = mpi.tasks(job, hosts, directory, launcher)
    if args.sync_dst_dir:
        ssh.sync_directory(hosts, args.sync_dst_dir, args.ssh)
    return found


def choose_topology(args: argparse.Namespace) -> tuple[str | None, int]:
    """Return the topology's name, if one is requested, and the number of servers."""
    servers = args.num_workers if args.num_servers is None else args.num_servers
    if args.topo is None:
        return None, servers
    try:
        name = topologies.named(args.topo)
    except ValueError as error:
        raise LaunchError(f"--topo: {error}") from error
    needs_servers = topologies.TOPOLOGIES[name].needs_servers
    if needs_servers and servers == 0:
        raise LaunchError(f"--topo {args.topo} needs servers: leave out -s 0")
    if not needs_servers and args.num_servers is None:
        servers = 0
    return name, servers


def travel_environment(
    args: argparse.Namespace, topology: str | None, hosts: list[Host]
) -> dict[str, str]:
    """Return environment variables that determine how gradients travel."""
    env = {}
    if args.comprplan == "auto":
        env["HIPRESS_PLAN"] = "auto"
    elif args.comprplan:
        if not os.path.isfile(args.comprplan):
            raise LaunchError(f"--comprplan: there is no file {args.comprplan}")
        env["HIPRESS_PLAN"] = plan_path(args)
    per_host = False
    if topology:
        env["HIPRESS_TOPOLOGY"] = topology
        per_host = topologies.TOPOLOGIES[topology].needs_devices_per_host
    devices = args.devices_per_host
    if per_host and devices is None:
        devices = workers_per_host(hosts, args.num_workers) if hosts else args.num_workers
        if devices is None:
            raise LaunchError(
                f"--topo {topology} needs --devices-per-host here: the hosts have different "
                "numbers of consecutive workers, or fewer slots than there are workers"
            )
    if devices is not None:
        env["HIPRESS_DEVICES_PER_HOST"] = str(devices)
    return env


def plan_path(args: argparse.Namespace) -> str:
    """Return the path at which the processes find the plan.

    With --sync-dst-dir it is in the copied directory, in which the processes run. The full path of
    a relative directory, which is in the home directory, is not known.
    """
    path = os.path.abspath(args.comprplan)
    if not args.sync_dst_dir:
        return path
    within = os.path.relpath(os.path.realpath(path), os.path.realpath(os.getcwd()))
    if within.startswith(os.pardir):
        raise LaunchError(
            f"--comprplan {args.comprplan} is outside of this directory, which --sync-dst-dir "
            "copies to the hosts"
        )
    return os.path.join(args.sync_dst_dir, within) if os.path.isabs(args.sync_dst_dir) else within


def root_address(args: argparse.Namespace, launcher: str, hosts: list[Host]) -> str:
    """Return the scheduler's address for the other processes."""
    if args.host_ip:
        if is_link_local(args.host_ip):
            raise LaunchError(f"--host-ip: {args.host_ip} is {LINK_LOCAL}")
        return without_brackets(args.host_ip)
    if args.interface:
        try:
            return of_interface(args.interface)
        except ValueError as error:
            raise LaunchError(str(error)) from error
    if launcher == "local":
        return "127.0.0.1"
    addresses = [address for address in (resolve(host.address) for host in hosts) if address]
    remote = [address for address in addresses if not is_loopback(address)]
    if addresses and not remote:
        return addresses[0]
    found = towards(remote[0]) if remote else of_this_machine()
    if is_loopback(found):
        raise LaunchError(
            "this machine has no address that other hosts can reach: --host-ip takes one, or -i an "
            "interface's name"
        )
    return found


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run a job, and return the exit status for the shell."""
    args = make_parser(prog).parse_args(argv)
    printer = Printer()
    try:
        try:
            os.getcwd()
        except OSError as error:
            raise LaunchError(f"the current directory is gone: {error.strerror}") from error
        tasks = make_tasks(args)
    except LaunchError as error:
        printer.message(str(error), "bold red")
        return 2
    policy: Policy = StopAtFailure()
    if args.elastic:
        policy = RestartWorkers(Rules(args.min_workers, args.max_restarts, args.finish_timeout))
    return Runner(printer, policy, args.grace, args.timeout).run(tasks)
