"""Inflicts faults on one elastic job, one after the other, and measures what they cost. Minutes.

Not for CI. `hipress launch --elastic` starts workers on loopback, or each in a separate network
namespace. Faults come in an order that the seed gives: a worker is killed, stopped for good or for
3 s, its link is cut (namespaces only), two are killed, the second while the survivors recover, or a
worker's supervisor is killed. At the end the launcher is killed, and then a worker that is not
restarted. After each fault the survivors must complete a step without their processes being started
again, and the victims must come back: a worker that was stopped for good is killed, and a link is
repaired, once the survivors train. After every step the members of a view must have the same
weights, bit for bit.

    python tests/nightly/chaos_elastic.py --workers 4 --faults 20 --seed 1 --json chaos.json
    python tests/nightly/chaos_elastic.py --network namespaces --minutes 10 -- python my_training.py
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import havoc  # noqa: F401  first: it finds the harness
from elastic_log import (
    Fault,
    Logs,
    costs,
    different_weights,
    first_step_after,
    rejoining,
    steps_done_again,
    trains_whole,
    two_lineages,
)

from harness import ROOT, netns, processes
from harness.launch import Launch, launched
from hipress.base import process_table

KINDS = ("kill", "stop", "pause", "double", "cut", "supervisor")
PAUSE = 3.0  # seconds
SECOND = 1.5  # seconds in which the second signal of a double fault comes
START = 300.0  # seconds that the job may take to start: several processes import PyTorch
STEPS_ALONE = 5  # that each worker must complete after the launcher was killed
SSH = """#!/bin/sh
# Stands in for ssh: runs the command on the node with the host's address.
while [ $# -gt 2 ]; do shift; done
exec ip netns exec {prefix}$((${{1##*.}} - 1)) sh -c "$2"
"""


class Hang(Exception):
    """Event that did not come in time; the message says which."""


class Chaos:
    """A running job and the faults that it has seen.

    Args:
        network: of namespaces, one for each worker; None on loopback.
        deadline: seconds in which the survivors must train again, and so must the victims then.
        max_lost: steps that survivors may have to do again after a fault.
        seed: of the faults.
    """

    def __init__(
        self,
        launch: Launch,
        logs: Logs,
        network: netns.ShapedNetwork | None,
        deadline: float,
        max_lost: int,
        seed: int,
    ) -> None:
        self.launch, self.logs, self.network = launch, logs, network
        self.deadline, self.max_lost, self.dice = deadline, max_lost, random.Random(seed)
        self.faults: list[Fault] = []
        self.slots = range(len(logs.events))

    def wait(self, condition: Callable[[], bool], what: str, seconds: float | None = None) -> None:
        """Read the logs until the condition holds.

        Raises:
            Hang: it does not within `seconds` (default: the deadline).
        """
        seconds = self.deadline if seconds is None else seconds
        end = time.monotonic() + seconds
        while True:
            self.logs.read()
            if condition():
                return
            if time.monotonic() > end:
                raise Hang(f"waited {seconds:g} s for {what}")
            time.sleep(0.05)

    def inflict(self, kind: str) -> Fault:
        """Inflict one fault, and follow it to the end of recovery.

        Raises:
            Hang: a survivor does not train on, or a victim does not come back.
        """
        self.logs.read()
        count = {"double": 2, "supervisor": 0}.get(kind, 1)
        victims = self.dice.sample(list(self.slots), count)
        fault = Fault(kind, victims, time.time(), pids={s: self.logs.pid(s) for s in self.slots})
        self.faults.append(fault)
        self._strike(fault)
        try:
            self._survive(fault)
            self._return(fault)
        except Hang as hang:
            fault.wrong.append(str(hang))
            raise
        return fault

    def _strike(self, fault: Fault) -> None:
        number = {"stop": signal.SIGSTOP, "pause": signal.SIGSTOP}.get(fault.kind, signal.SIGKILL)
        if fault.kind == "cut":
            self.network.cut(fault.victims[0])
        elif fault.kind == "supervisor":
            parents = process_table.parents()
            own = {parents[pid] for pid in fault.pids.values()} - {self.launch.process.pid}
            send(self.dice.choice(sorted(own)), number)
        else:
            send(fault.pids[fault.victims[0]], number)
        if fault.kind == "double":
            time.sleep(self.dice.uniform(0, SECOND))
            send(fault.pids[fault.victims[1]], number)
        fault.struck = time.time()
        self.logs.read()
        for slot in fault.survivors():
            before = [e for e in self.logs.steps(slot) if e["time"] <= fault.struck]
            fault.epochs[slot] = before[-1]["epoch"] if before else -1
            fault.step = max([fault.step, *(e["step"] for e in before if e["time"] <= fault.time)])
        if fault.kind == "pause":
            time.sleep(PAUSE)
            send(fault.pids[fault.victims[0]], signal.SIGCONT)
            fault.struck = time.time()

    def _survive(self, fault: Fault) -> None:
        def all_trained() -> bool:
            for slot in fault.survivors():
                if self.logs.pid(slot) != fault.pids[slot]:
                    raise Hang(f"worker {slot}, which was not hit, has been started again")
            return not self._silent(fault)

        try:
            self.wait(all_trained, "the survivors' next step")
        except Hang as hang:
            raise Hang(f"{hang}; without one: workers {self._silent(fault)}") from None
        firsts = [first_step_after(self.logs, fault, slot) for slot in fault.survivors()]
        fault.recovered = max(event["time"] for event in firsts) - fault.time
        fault.lost = max(steps_done_again(self.logs, fault, slot) for slot in fault.survivors())
        if fault.lost > self.max_lost:
            fault.wrong.append(f"{fault.lost} steps were lost; allowed are {self.max_lost}")

    def _silent(self, fault: Fault) -> list[int]:
        return [s for s in fault.survivors() if first_step_after(self.logs, fault, s) is None]

    def _return(self, fault: Fault) -> None:
        since = max(fault.struck, fault.time + fault.recovered - 1e-6)
        if fault.kind == "stop":  # the launcher's user sees the hang and ends it
            send(fault.pids[fault.victims[0]], signal.SIGKILL)
            since = time.time()
        elif fault.kind == "cut":
            self.network.mend(fault.victims[0])
            since = time.time()
        self.wait(lambda: trains_whole(self.logs, since), f"workers {fault.victims} to come back")
        fault.whole = time.time() - fault.time
        times = [rejoining(self.logs, slot, fault.pids[slot]) for slot in fault.victims]
        fault.rejoin = [seconds for seconds in times if seconds is not None]
        written = [
            event.get("residual_written_off")
            for slot in self.slots
            for event in self.logs.events[slot]
            if event["time"] > fault.time
        ]
        fault.written_off = max((w for w in written if w is not None), default=None)
        for slot in fault.survivors():
            if self.logs.pid(slot) != fault.pids[slot]:
                fault.wrong.append(f"worker {slot}, which was not hit, has been started again")

    def kill_launcher(self) -> None:
        """Kill the launcher, then a worker: the remaining workers continue, and none is restarted.

        Raises:
            Hang: a process does not.
        """
        self.logs.read()
        pids = {slot: self.logs.pid(slot) for slot in self.slots}
        fault = Fault("launcher", [], time.time(), time.time(), pids=pids)
        self.faults.append(fault)
        fault.step = max(self.logs.last_step(slot)["step"] for slot in self.slots)
        self.launch.process.kill()
        self.launch.process.wait()
        try:
            self.wait(
                lambda: all(
                    len(self.logs.steps(slot, fault.time)) >= STEPS_ALONE for slot in self.slots
                ),
                f"{STEPS_ALONE} steps without a launcher",
            )
            fault.recovered = max(self.logs.steps(s, fault.time)[0]["time"] for s in self.slots)
            fault.recovered -= fault.time
            if any(self.logs.pid(slot) != pids[slot] for slot in self.slots):
                fault.wrong.append("a worker died with the launcher")
            last = Fault("kill", [self.dice.choice(self.slots)], time.time(), pids=pids)
            self.faults.append(last)
            self._strike(last)
            self._survive(last)
            time.sleep(2.0)
            self.logs.read()
            if self.logs.pid(last.victims[0]) != pids[last.victims[0]]:
                last.wrong.append("a worker was started again without a launcher")
        except Hang as hang:
            self.faults[-1].wrong.append(str(hang))
            raise


def send(pid: int, number: int) -> None:
    """Signal a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextlib.contextmanager
def started(args: argparse.Namespace, folder: Path) -> Iterator[Chaos]:
    """Yield a running job, of which nothing is left in the end."""
    with contextlib.ExitStack() as stack:
        network, address = None, "127.0.0.1"
        arguments = [
            "--elastic",
            "-n",
            str(args.workers),
            "--min-workers",
            str(args.min_workers),
            "--max-restarts",
            "1000000",
        ]
        if args.network == "namespaces":
            nodes = args.workers + bool(args.also)
            network = netns.ShapedNetwork(nodes, rate=args.rate, verify=False)
            stack.enter_context(network)
            ssh, hosts = folder / "ssh", folder / "hosts"
            ssh.write_text(SSH.format(prefix=network.namespace(0)[:-1]))
            ssh.chmod(0o700)
            hosts.write_text("".join(f"{network.address(i)}\n" for i in range(args.workers)))
            arguments += ["-H", str(hosts), "--ssh", str(ssh)]
            address = network.address(args.workers) if args.also else address
        elif args.rate:
            sys.exit("--rate needs --network namespaces")
        if args.also:
            words = [word.replace("{address}", address) for word in shlex.split(args.also)]
            command = network.command(args.workers, words) if network else words
            log = stack.enter_context(open(folder / "beside", "wb"))
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            stack.enter_context(process)  # which waits for its end
            stack.callback(process.kill)
        given = [entry.replace("{address}", address).split("=", 1) for entry in args.env]
        environment = {
            "HIPRESS_ELASTIC_LOG": str(folder),
            "TMPDIR": str(folder),
            "HIPRESS_HEARTBEAT_TIMEOUT_MS": str(args.heartbeat_ms),
            **dict(given),
        }
        output = stack.enter_context(open(folder / "output", "wb"))
        launch = stack.enter_context(
            launched(
                [*arguments, "--", *args.command],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        )
        logs = Logs(folder, args.workers)
        yield Chaos(launch, logs, network, args.deadline, args.max_lost, args.seed)


def play(chaos: Chaos, args: argparse.Namespace) -> list[str]:
    """Start training and inflict the faults; return the error that ended it."""

    def trains() -> bool:
        if chaos.launch.process.poll() is not None:
            raise Hang(f"the launcher ended with status {chaos.launch.process.returncode}")
        return trains_whole(chaos.logs, 0.0)

    try:
        chaos.wait(trains, "the job to start", START)
        end = time.monotonic() + args.minutes * 60 if args.minutes else None
        kinds = [kind for kind in args.kinds if kind != "cut" or chaos.network]
        number = 0
        while time.monotonic() < end if end else number < args.faults:
            time.sleep(chaos.dice.uniform(0.5, 1.5) * args.every)
            fault = chaos.inflict(chaos.dice.choice(kinds))
            number += 1
            print(line(number, fault), flush=True)
        chaos.kill_launcher()
    except Hang as hang:
        return [str(hang)]
    return []


COLUMNS = "{:>3}  {:<9}{:<9}{:>8}{:>7}{:>13}{:>12}{:>10}  {}"
HEAD = COLUMNS.format(
    "", "fault", "workers", "at step", "lost", "next step, s", "rejoin, s", "whole, s", ""
)


def line(number: int, fault: Fault) -> str:
    """Return a fault as a line of the table."""

    def seconds(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    victims = ",".join(map(str, fault.victims)) or "-"
    return COLUMNS.format(
        number,
        fault.kind,
        victims,
        fault.step,
        fault.lost,
        seconds(fault.recovered),
        seconds(max(fault.rejoin, default=None)),
        seconds(fault.whole),
        "; ".join(fault.wrong),
    ).rstrip()


def summary(chaos: Chaos, wrong: list[str]) -> dict[str, object]:
    """Return a summary of the whole run; `wrong` is the error that ended it."""
    compared, different = different_weights(chaos.logs.events)
    if not compared:
        different = ["no step was logged with the weights of two members"]
    lineages = two_lineages(chaos.logs.events)
    wrong = [*(w for fault in chaos.faults for w in fault.wrong), *wrong, *different, *lineages]
    deaths = [fault for fault in chaos.faults if fault.kind != "launcher"]
    kinds = dict.fromkeys(fault.kind for fault in chaos.faults)
    return {
        "faults": len(chaos.faults),
        "steps": max(
            (e["step"] for events in chaos.logs.events for e in events if e["event"] == "step"),
            default=0,
        ),
        **costs(deaths),
        "by_kind": {k: costs([f for f in chaos.faults if f.kind == k]) for k in kinds},
        "steps_compared": compared,
        "torn_lines": chaos.logs.torn,
        "wrong": list(dict.fromkeys(wrong)),
    }


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--workers", type=int, default=4)
    add("--min-workers", type=int, default=2)
    add("--faults", type=int, default=10)
    add("--minutes", type=float, help="go on for so long, instead of --faults")
    add("--every", type=float, default=3.0, help="seconds of training between faults, on average")
    add("--deadline", type=float, default=60.0, help="seconds in which training must go on")
    add("--max-lost", type=int, default=1, help="steps that may be lost in a fault")
    add("--seed", type=int, default=1)
    add("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    add("--network", choices=["loopback", "namespaces"], default="loopback")
    add("--rate", help="of the namespaces' links, e.g. 1gbit; default: not shaped")
    add("--heartbeat-ms", type=int, default=3500, help="silence that is death")
    add("--check-every", type=int, default=1, help="steps between comparisons, in the example")
    add(
        "--also",
        metavar="COMMAND",
        help="runs on a node of its own, which no fault hits; "
        "{address} in it and in --env is that node's",
    )
    add("--env", action="append", default=[], metavar="KEY=VALUE")
    add("--json", help="file for the results")
    add("--keep", help="folder for the logs; default: a temporary one")
    add("command", nargs="*", help="what the workers run; default: examples/torch/elastic.py")
    args = parser.parse_args()
    if set(args.kinds) - set(KINDS):
        parser.error(f"--kinds {','.join(args.kinds)}: there are {', '.join(KINDS)}")
    if args.workers < 3 or args.min_workers > args.workers - 2:
        parser.error("a double fault needs --workers of at least 3, and 2 more than --min-workers")
    if args.network == "namespaces":
        netns.require()
    if not args.command:
        script = ROOT / "examples" / "torch" / "elastic.py"
        args.command = [
            sys.executable,
            str(script),
            "--steps",
            "1000000",
            "--check-every",
            str(args.check_every),
        ]
    return args


def main() -> int:
    args = parse()
    processes.clean_up_when_terminated()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        print(HEAD)
        with started(args, folder) as chaos:
            wrong = play(chaos, args)
            chaos.logs.read()
        found = summary(chaos, wrong)
        output = (folder / "output").read_text(errors="replace")
    for number, fault in enumerate(chaos.faults, 1):
        if fault.wrong or fault.kind == "launcher" or number == len(chaos.faults):
            print(line(number, fault))
    for kind, cost in {"all": found, **found["by_kind"]}.items():
        spreads = {name: cost[name] for name in costs([])}
        texts = [
            f"{name} {s['median']:.2f} (worst {s['worst']:.2f})"
            for name, s in spreads.items()
            if s["worst"] is not None
        ]
        if texts:
            print(f"{kind}: median {', '.join(texts)}")
    print(
        f"{found['faults']} faults in {found['steps']} steps, weights compared after "
        f"{found['steps_compared']} steps: {len(found['wrong'])} things went wrong"
    )
    for text in found["wrong"][:20]:
        print(f"wrong: {text}")
    if found["wrong"]:
        print("the end of the job's output:", *output.splitlines()[-30:], sep="\n  ")
    if args.json:
        result = {
            "workers": args.workers,
            "seed": args.seed,
            "network": args.network,
            "rate": args.rate,
            "heartbeat_ms": args.heartbeat_ms,
            "command": args.command,
            "summary": found,
            "faults": [fault.row() for fault in chaos.faults],
        }
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
