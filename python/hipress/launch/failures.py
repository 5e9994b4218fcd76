"""The policy of jobs whose first failure ends them, and how processes end, in words."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from hipress.base import process_table

from .job import RANKS, WORKER
from .runner import Policy, Running

CAUSE_SECONDS = 0.25  # from the first visible failure, in which its cause may become visible
SURVIVORS_SECONDS = 3.0  # in which survivors may report the failure and end by themselves
LINGER_SECONDS = 15.0
"""Seconds that servers and the scheduler may outlive the workers.

They get as long again while one of them computes for at least a twentieth of that time. A scheduler
then writes the job's timeline, and ``hipress profile`` evaluates it there.
"""
MAX_LINGER_SECONDS = 600.0
"""Seconds after the last worker at which they are stopped in any case."""


@dataclass(frozen=True)
class Failure:
    """End of a process with another status than 0."""

    name: str
    host: str
    #: As Popen's returncode.
    status: int
    ended: float
    started: float
    #: Whether it is the status of the command that connects to the host.
    of_connection: bool

    def __str__(self) -> str:
        place = f" on {self.host}" if self.host else ""
        end = describe(self.status)
        if self.host and self.status == 255 and self.of_connection:
            end += " (so ssh ends when it cannot connect)"
        return f"{self.name}{place} {end} after {self.ended - self.started:.1f} s"


def describe(status: int) -> str:
    """Return a process's end in words."""
    number = -status if status < 0 else status - 128
    name = ""
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}" if status < 0 else ""
    if status < 0:
        return f"was killed by {name} (signal {number})"
    return f"exited with status {status}" + (f" (128 + {number}: {name})" if name else "")


def shell_status(status: int) -> int:
    """Return the status as a shell shows it: 128 + signal."""
    return 128 - status if status < 0 else status


class StopAtFailure(Policy):
    """Policy that ends the job when a process fails, and names the process that caused it.

    The job ends when all processes have ended.
    """

    def __init__(self) -> None:
        self._failures: list[Failure] = []
        self._early: dict[str, float] = {}  # when servers and the scheduler ended with 0
        self._linger: Linger | None = None

    def report(self, running: Running, report: dict) -> None:
        """Record a failed rank, or the status that a supervisor reports."""
        if "rank" not in report:
            running.reported = report["exit"]
        elif report["exit"] and not self.runner.stops:
            self._fail(report["rank"], "", running, report["exit"])

    def ended(self, running: Running, now: float) -> None:
        """Record how a process has ended."""
        task = running.task
        status = running.status if running.reported is None else running.reported
        if status != 0 and not self.runner.stops:
            self._fail(task.name, task.host, running, status)
        elif status == 0 and task.role not in (WORKER, RANKS):
            self._early[task.name] = now

    def step(self, now: float) -> None:
        """Stop the job after a failure, or servers that outlive the workers for too long."""
        if self.runner.verdict is not None:
            return
        if self._failures:
            # The failure is reported once its cause may be visible.
            causes = self._causes()
            due = self._failures[0].ended + SURVIVORS_SECONDS
            if causes:
                due = causes[0].ended + CAUSE_SECONDS
            if now >= due:
                self._name_cause(len(self.runner.running))
                self.runner.stop(shell_status(self._cause().status), now, SURVIVORS_SECONDS)
            return
        running = self.runner.running
        if any(one.task.role in (WORKER, RANKS) for one in running):
            return
        names = ", ".join(one.task.name for one in running)
        self._linger = linger = self._linger or Linger(now)
        renewals = linger.renewals
        if names and linger.is_over(now):
            self.runner.say(
                f"{names} still ran {now - linger.began:.1f} s after the last worker; stopping"
            )
            self.runner.stop(0, now)
        elif renewals == 0 < linger.renewals:
            self.runner.say(f"the last worker has ended, {names} still computes; waiting for it")

    def pause(self, now: float) -> float:
        """Return fewer seconds while a failure waits for its cause."""
        return 0.05 if self._failures else 0.5

    def result(self) -> int:
        """Return the status of the process that caused a failure, or 0."""
        if not self._failures:
            return 0
        self._name_cause(0)
        return shell_status(self._cause().status)

    def _fail(self, name: str, host: str, running: Running, status: int) -> None:
        lost = running.reported is None
        now = time.monotonic()
        self._failures.append(Failure(name, host, status, now, running.started, lost))

    def _causes(self) -> list[Failure]:
        """Return failures that may have caused the remaining ones.

        Servers and the scheduler exit with 1 as soon as a worker's connections close. A worker with
        an error in its script ends later. If no worker fails then, an srun and processes that it
        ended with SIGTERM only pass a server's failure on.
        """
        followers = [
            one
            for one in self._failures
            if one.status == 1 and one.name.split()[0] in ("server", "scheduler")
        ]
        causes = [one for one in self._failures if one not in followers]
        if followers:
            causes = [one for one in causes if one.status != -signal.SIGTERM and one.name != "srun"]
        return causes

    def _cause(self) -> Failure:
        """Return the first process killed by a signal soon after the first failure, or the latter.

        SIGTERM does not count, because mpirun and srun send it to survivors. An srun only passes
        a failure on.
        """
        failures = self._causes() or self._failures
        near = [one for one in failures if one.ended <= failures[0].ended + CAUSE_SECONDS]
        near = [one for one in near if one.name != "srun"] or near
        crashes = [one for one in near if one.status < 0 and one.status != -signal.SIGTERM]
        return (crashes or near)[0]

    def _name_cause(self, alive: int) -> None:
        """Print which process has failed."""
        cause = self._cause()
        others = [
            f"{name} had ended {cause.ended - when:.1f} s before"
            for name, when in self._early.items()
            if when < cause.ended
        ]
        before = f" ({', '.join(others)})" if others else ""
        stopping = ""
        if alive:
            processes = f"{alive} processes" if alive > 1 else "process"
            stopping = f"; stopping the other {processes}"
        self.runner.say(f"{cause}{before}{stopping}", "bold red")


class Linger:
    """Time for which servers and the scheduler have outlived the workers."""

    def __init__(self, now: float) -> None:
        self.began, self.renewals = now, 0
        self._until, self._used = now + LINGER_SECONDS, processor_seconds()

    def is_over(self, now: float) -> bool:
        """Return whether to stop them: a term has ended in which none of them computed."""
        if now < self._until:
            return False
        used = processor_seconds()
        longest = max(
            (seconds - self._used.get(pid, 0.0) for pid, seconds in used.items()), default=0
        )
        if longest < LINGER_SECONDS / 20 or now >= self.began + MAX_LINGER_SECONDS:
            return True
        self._until, self._used, self.renewals = now + LINGER_SECONDS, used, self.renewals + 1
        return False


def processor_seconds() -> dict[int, float]:
    """Return the processor time of each process that descends from this one, by process id."""
    found = {}
    for pid in process_table.descendants():
        fields = process_table.read_stat(pid)
        if fields is not None:
            found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
