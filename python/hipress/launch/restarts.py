"""Policy of elastic jobs: failed workers are restarted in their slots until one has finished."""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass, field
from enum import Enum, auto

from hipress.base.files import read_private
from hipress.errors import CAME_LATE

from . import supervisor
from .failures import describe, shell_status
from .job import LaunchTask
from .runner import Policy, Running

NOT_FINISHED = 124  # the status when a worker had to be ended, as for --timeout
#: Variable that marks all processes of a job, by which those that a worker leaves are found.
JOB = "HIPRESS_ELASTIC_JOB"

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds from a death to the restart
FIRST_CONNECT_DELAY, LONGEST_CONNECT_DELAY = 0.5, 30.0  # between attempts to connect again
LOST_SECONDS = 600.0  # a worker without a connection for so long is out of sight
UNSEEN_SECONDS = 10.0  # wait after an unknown status, since workers may finish together
AWAY_SECONDS = 30.0  # a host never reached for so long may be a wrong name: that costs restarts
STEADY_SECONDS = 10.0  # a worker that lives so long has recovered: the next delay is the first
LATE_SECONDS = 60.0  # a restarted worker may need so long until it trains
CANNOT_RUN = (126, 127)  # as a shell's: the command is not there, or may not be run
NOT_CONNECTED = 255  # ssh's


class SlotState(Enum):
    """State of a slot."""

    RUNNING = auto()
    ADOPTED = auto()  # runs, but its supervisor was killed: a child of the launcher now
    LOST = auto()  # may run on another host; there is no connection to it now
    WAITING = auto()  # for its restart
    FINISHED = auto()  # with status 0
    DEAD = auto()  # is not started again


@dataclass(frozen=True)
class Rules:
    """Limits within which an elastic job continues."""

    min_workers: int = 1
    max_restarts: int = 3
    #: Seconds in which all workers have to end when the first one has ended with 0.
    finish_timeout: float = 60.0


@dataclass
class WorkerSlot:
    """A slot and the worker in it. Times are of time.monotonic()."""

    task: LaunchTask
    running: Running | None = None
    state: SlotState = SlotState.RUNNING
    restarts: int = 0
    delay: float = 0.0
    due: float = 0.0  # when it is started again
    began: float = 0.0
    #: What the supervisor has reported of the worker's process: its id ("pid"), and more.
    process: dict | None = None
    #: The worker's status, as a supervisor has reported it.
    reported: int | None = None
    #: Whether descendants of the worker were left that could not be ended.
    left_processes: bool = False
    #: Whether a process of this slot may still run although a later one was started, or may be.
    #: Stays true: reports of ended processes cover all earlier processes of the slot.
    unsure: bool = False
    #: Whether its supervisor has yet to be sent the latest published ends.
    ended_slots_due: bool = False
    #: Without a status: whether the worker has ended with its host, which has started again.
    gone_with_host: bool | None = None
    #: Times of the loss of its connection, and of the next attempt.
    lost: float = 0.0
    connect_due: float = 0.0
    connect_delay: float = 0.0
    #: Whether a connection has reached a host or container where its process never was.
    elsewhere: bool = False
    #: Time since which no process can start in it, because its host is not reached; and whether the
    #: host was reached before.
    unreached_since: float | None = None
    reached: bool = False
    #: Its end in words, if that is certain but processes on its host may be left.
    known_end: str = ""
    #: Whether the status of its last process, which ended at ``ended``, is unknown.
    unseen: bool = False
    ended: float = 0.0
    #: Whether its process was started after such an end: it does not show that training continues.
    in_doubt: bool = False
    #: Time of the last failure of a process that was not in doubt.
    failed: float = -math.inf
    #: Status and description of its last failure.
    status: int = 0
    death: str = ""
    #: Time at which it was given up.
    dead: float = 0.0

    @property
    def full_name(self) -> str:
        """Name of the worker, with its host if that is not this one."""
        name = self.task.name
        return f"{name} on {self.task.host}" if self.task.host else name

    @property
    def runs(self) -> bool:
        """Whether a process is known to run."""
        return self.state in (SlotState.RUNNING, SlotState.ADOPTED)

    @property
    def may_run(self) -> bool:
        """Whether it may take part in training, now or later."""
        return self.runs or self.state in (SlotState.LOST, SlotState.WAITING)

    def started(self, running: Running, now: float) -> None:
        """Record that a process was started in this slot."""
        self.running, self.began, self.state = running, now, SlotState.RUNNING
        self.process = self.reported = self.gone_with_host = None
        self.left_processes = self.elsewhere = self.ended_slots_due = False
        self.known_end, self.in_doubt, self.unseen = "", self.unseen, False

    @property
    def pid(self) -> int | None:
        """The worker's process id, once it is known."""
        return self.process and self.process["pid"]

    def set_process(self, process: dict) -> None:
        """Record the process that a supervisor has reported."""
        self.process, self.reached, self.unreached_since = process, True, None

    def put_off(self, status: int, now: float) -> bool:
        """Wait for the next attempt if the slot's host cannot be reached, which costs no restart.

        Returns:
            False, and nothing is changed, if the host is reached or was never reached.
        """
        if status != NOT_CONNECTED or self.task.via is None:
            return False
        if self.unreached_since is None:
            self.unreached_since, self.connect_delay = self.began, FIRST_CONNECT_DELAY
        elif not self.reached and now >= self.unreached_since + AWAY_SECONDS:
            return False
        else:
            self.connect_delay = min(2 * self.connect_delay, LONGEST_CONNECT_DELAY)
        self.state, self.due = SlotState.WAITING, now + self.connect_delay
        self.unseen, self.in_doubt = self.in_doubt, False  # as before the attempt
        return True

    def lose(self, now: float) -> bool:
        """Record that there is no connection to the worker. Return whether there was one."""
        connected = self.state != SlotState.LOST
        if connected:
            self.lost, self.connect_delay = now, FIRST_CONNECT_DELAY
        else:
            self.connect_delay = min(2 * self.connect_delay, LONGEST_CONNECT_DELAY)
        self.state, self.connect_due = SlotState.LOST, now + self.connect_delay
        return connected

    @property
    def connects(self) -> bool:
        """Whether a connection to it is being made again."""
        return self.state == SlotState.LOST and self.running.status is None

    def out_of_sight(self, now: float) -> bool:
        """Return whether the connection was lost long ago, or the exit status is unknown."""
        if self.state == SlotState.WAITING and self.unreached_since is not None:
            return self.unseen or now >= self.unreached_since + LOST_SECONDS
        return self.unseen or (self.state == SlotState.LOST and now >= self.lost + LOST_SECONDS)

    def shows_training(self, after: float) -> bool:
        """Return whether this slot shows that training continued after another process had ended.

        It does by a process from before that end, or by a failure since.
        """
        before = self.runs and not self.in_doubt and self.began < after
        return before or self.failed > after

    def settle(self, others: list[WorkerSlot], now: float) -> None:
        """End the doubt when an older process has run for long enough at the same time."""
        if self.in_doubt and self.runs and now >= self.began + LATE_SECONDS:
            self.in_doubt = not any(other.shows_training(self.began) for other in others)

    def died(self, status: int, death: str, now: float, limit: int) -> None:
        """Record a failure. The slot waits for a restart, if one of ``limit`` is left."""
        self.status, self.death = status, death
        if self.restarts >= limit or (self.pid is None and status in CANNOT_RUN):
            self.state, self.dead = SlotState.DEAD, now
            return
        again = self.restarts and now - self.began < STEADY_SECONDS
        self.delay = min(LONGEST_DELAY, 2 * self.delay) if again else FIRST_DELAY
        self.due = now + self.delay
        self.restarts += 1
        self.state = SlotState.WAITING

    def late(self, ending: float) -> bool:
        """Return whether the last process may have come too late to train.

        It has if it was restarted shortly before ``ending``, when the first worker finished.
        """
        last = self.restarts - (self.due > self.began)
        return last > 0 and self.began > ending - LATE_SECONDS


@dataclass
class JobEnding:
    """End of a job, after a worker has ended with 0 or has found training over."""

    since: float
    #: The worker that has finished first, or "training".
    first: str
    #: Time since which all workers must end: when one finished, which shows that they can.
    clock: float = math.inf
    #: Statuses of those that failed then, in order.
    failed: list[int] = field(default_factory=list)

    def note(self, slot: WorkerSlot, status: int) -> None:
        """Record a worker that has not finished, unless its host was not reached."""
        if slot.unreached_since is None and not slot.late(self.since):
            self.failed.append(shell_status(status))

    def note_stopped(self, slot: WorkerSlot, status: int, first: bool) -> None:
        """Record a worker that had to be stopped.

        A restarted worker may be far from its script's end, and has the final weights of the job.
        So it counts only if it has to save them.
        """
        if first or not slot.restarts:
            self.note(slot, status)


class RestartWorkers(Policy):
    """Policy that restarts a worker of an elastic job when it fails.

    The death of a supervisor or the end of a connection is not the end of a worker.

    The job has finished when a worker has ended with 0. From then on no worker is restarted, and
    each running worker has ``finish_timeout`` seconds to end. A worker that joins after the end of
    training ends with CAME_LATE. No worker is restarted then either, but running workers may still
    save. The exit status is 0 if the last process of each slot has ended with one of these, except
    slots

    * that used up their restarts before, while enough others were left,
    * whose worker was restarted within a minute before the first worker finished, because it may
      have come too late to train with it, and
    * whose worker had to be stopped after a restart. For slot 0 that counts, because its worker
      usually saves.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._slots: list[WorkerSlot] = []
        self._ending: JobEnding | None = None
        self._job = secrets.token_hex(8)
        # For each slot: processes with fewer restarts have ended; None: all have ended, and no
        # process will be started. Then the boot id and the namespace of the last one's supervisor.
        self._ended_slots: dict[str, tuple[int | None, str, str]] = {}

    # Starting and stopping

    def start(self, task: LaunchTask) -> None:
        """Start a worker in a new slot."""
        slot = WorkerSlot(task)
        self._slots.append(slot)
        self._start_in(slot)

    def _start_in(self, slot: WorkerSlot) -> None:
        env = {**slot.task.spec["env"], **self._marks(slot)}
        running = self.runner.start(slot.task, persistent=True, env=env)
        slot.started(running, time.monotonic())

    def _marks(self, slot: WorkerSlot) -> dict[str, str]:
        """Return variables that together only the slot's present worker has."""
        own = {"HIPRESS_ELASTIC_SLOT": slot.task.spec["env"].get("HIPRESS_ELASTIC_SLOT", "")}
        return {JOB: self._job, **own, "HIPRESS_ELASTIC_RESTART": str(slot.restarts)}

    def _connect(self, slot: WorkerSlot, command: bytes) -> None:
        """Begin to watch a worker over a new connection."""
        marks = [f"{name}={value}" for name, value in self._marks(slot).items()]
        slot.running = self.runner.start(
            slot.task, persistent=True, watch=slot.process, marks=marks
        )
        slot.ended_slots_due = False
        if command:
            self.runner.send(slot.running, command + b"\n")

    def command(self, command: bytes) -> None:
        """Send TERM or KILL to workers without a supervisor."""
        kill = command == b"KILL"
        for slot in self._slots:
            if slot.state == SlotState.ADOPTED:
                numbers = [signal.SIGKILL] if kill else [signal.SIGTERM, signal.SIGCONT]
                supervisor.kill_group(slot.pid, *numbers)
            elif slot.state == SlotState.LOST and not slot.connects and not kill:
                self._connect(slot, command)

    def _publish_end(self, slot: WorkerSlot) -> None:
        """Report to the workers that all processes of a slot so far have ended, if that is certain.

        Their agents need such evidence: a gateway may have refused a connection, so a refusal does
        not show that a process is dead (hipress/elastic/membership/protocol.py).
        """
        seen = slot.reported is not None or slot.gone_with_host is not None
        if not seen or slot.left_processes:
            slot.unsure = True
        number = slot.task.spec.get("env", {}).get("HIPRESS_ELASTIC_SLOT", "")
        if not number or slot.unsure or not slot.process["namespace"]:
            return
        restarts = slot.restarts if slot.state == SlotState.WAITING else None
        self._ended_slots[number] = (restarts, slot.process["boot"], slot.process["namespace"])
        for other in self._slots:
            if other.state == SlotState.RUNNING:
                self._send_ended_slots(other)

    def _send_ended_slots(self, slot: WorkerSlot) -> None:
        """Send the published ends; later, if a supervisor has not read what was sent before."""
        slot.ended_slots_due = bool(slot.running.unsent)
        if self._ended_slots and not slot.ended_slots_due:
            self.runner.send(
                slot.running, b"ENDED " + json.dumps(self._ended_slots).encode() + b"\n"
            )

    # Watching

    def step(self, now: float) -> None:
        """Send published ends; stop the job if it has ended; start the processes that are due."""
        for slot in self._slots:
            if slot.state == SlotState.ADOPTED:
                self._look_at_adopted(slot, now)
            elif slot.ended_slots_due and slot.running.status is None:
                self._send_ended_slots(slot)
        if self.runner.verdict is None:
            self._stop_if_over(now)
        if self.runner.verdict is None:
            self._start_due(now)

    def continues(self, now: float) -> bool:
        """Return whether the job continues because of a slot."""
        return any(self._waits_for(slot, now) for slot in self._slots)

    def pause(self, now: float) -> float:
        """Return the seconds until a worker or a connection must be started, at most 0.5."""
        pauses = [0.5]
        for slot in self._slots:
            if slot.state == SlotState.WAITING and self._ending is None and self._may_start(slot):
                pauses.append(slot.due - now)
            elif slot.state == SlotState.LOST and not slot.connects:
                pauses.append(slot.connect_due - now)
        return min(pauses)

    def result(self) -> int:
        """Return the status of the first worker that failed at the end, or 0."""
        if lost := ", ".join(
            slot.full_name for slot in self._slots if slot.state == SlotState.LOST
        ):
            self.runner.say(f"{lost}: out of sight; whether it has finished, too, is not known")
        return (self._ending.failed or [0])[0] if self._ending else 1

    def _waits_for(self, slot: WorkerSlot, now: float) -> bool:
        """Return whether the job continues because of a slot."""
        if slot.runs:
            return True
        if self.runner.verdict is not None:
            return self.runner.stops and slot.connects
        if self._ending is not None:
            in_time = now < self._ending.clock + self._rules.finish_timeout
            return slot.state == SlotState.LOST and in_time and not slot.out_of_sight(now)
        return slot.state in (SlotState.WAITING, SlotState.LOST)

    def _may_start(self, slot: WorkerSlot) -> bool:
        """Return whether a waiting worker may be restarted: not while training may have ended."""
        others = [other for other in self._slots if other is not slot]
        return not slot.unseen or any(other.shows_training(slot.ended) for other in others)

    def _stop_if_over(self, now: float) -> None:
        left = [slot for slot in self._slots if slot.may_run]
        running = [slot for slot in self._slots if slot.runs]
        if self._ending is not None:
            if running and now >= self._ending.clock + self._rules.finish_timeout:
                for slot in running:
                    self._ending.note_stopped(slot, NOT_FINISHED, slot is self._slots[0])
                names = ", ".join(slot.full_name for slot in running)
                self.runner.say(
                    f"{names} had not finished {self._rules.finish_timeout:g} s after "
                    f"{self._ending.first}; stopping"
                )
                self.runner.stop((self._ending.failed or [0])[0], now)
        elif len(left) < self._rules.min_workers:
            dead = [slot for slot in self._slots if slot.state == SlotState.DEAD]
            dead.sort(key=lambda slot: slot.dead)
            deaths = ", ".join(f"{slot.full_name} {slot.death}" for slot in dead)
            self.runner.say(
                f"{len(left)} of {len(self._slots)} workers can still run, fewer than "
                f"--min-workers {self._rules.min_workers}: {deaths}; stopping the job",
                "bold red",
            )
            self.runner.stop(shell_status(dead[0].status), now)
        elif all(slot.out_of_sight(now) for slot in left):
            names = ", ".join(slot.full_name for slot in left)
            self.runner.say(f"{names}: out of sight; whether training has finished is not known")
            self.runner.verdict = 1

    def _start_due(self, now: float) -> None:
        for slot in self._slots:
            slot.settle([other for other in self._slots if other is not slot], now)
            if slot.state == SlotState.LOST and not slot.connects and now >= slot.connect_due:
                self._connect(slot, b"KILL" if slot.known_end else b"")
            elif self._ending is not None:
                continue
            elif slot.state == SlotState.WAITING and now >= slot.due and self._may_start(slot):
                self._start_in(slot)

    # Ends

    def ended(self, running: Running, now: float) -> None:
        """Handle the end of a supervisor or a connection."""
        slot = self._slot_of(running)
        if slot is not None:
            self._supervisor_ended(slot, running.status, now)

    def _slot_of(self, running: Running) -> WorkerSlot | None:
        return next((slot for slot in self._slots if slot.running is running), None)

    def _supervisor_ended(self, slot: WorkerSlot, status: int, now: float) -> None:
        if slot.reported is not None:
            self._ended(slot, slot.reported, describe(slot.reported), now)
        elif slot.gone_with_host is not None:
            self._gone(slot, now)
        elif slot.pid is None:
            what = f"{slot.task.means} {describe(status)}".strip()
            slot.unsure = True  # the worker may run, and only its supervisor's report is lost
            away, trains = slot.unreached_since, not self.runner.stops and self._ending is None
            if trains and slot.put_off(status, now):
                if away is None:
                    self.runner.say(f"{slot.full_name} could not be reached ({what}); trying again")
                return
            self._ended(slot, status, f"did not start ({what})", now)
        elif slot.task.via is not None:
            self._lost(slot, status, now)
        else:
            slot.state = SlotState.ADOPTED
            if self._look_at_adopted(slot, now):
                self.runner.say(
                    f"the supervisor of {slot.task.name} {describe(status)}; the worker "
                    f"goes on, and writes to /proc/{slot.pid}/fd/1 unseen"
                )

    def _lost(self, slot: WorkerSlot, status: int, now: float) -> None:
        """Handle a connection to a worker that has ended or could not be made."""
        if self.runner.stops:
            if slot.lose(now):  # once more, to end it
                self._connect(slot, b"KILL")
            else:
                slot.state = SlotState.DEAD
                self.runner.say(f"could not reach {slot.full_name}, which may still run")
            return
        how = f"{slot.task.means} {describe(status)}"
        if not slot.lose(now):
            return
        if slot.task.contained and status >= 0:
            slot.known_end = f"ended with its supervisor ({how})"
            self._connect(slot, b"KILL")  # not every Slurm ends what the step leaves behind
        else:
            self.runner.say(
                f"the connection to {slot.full_name} has ended ({how}); the worker may go on; "
                "connecting again"
            )

    def _look_at_adopted(self, slot: WorkerSlot, now: float) -> bool:
        """Return whether a worker that this process has inherited still runs."""
        try:
            pid, status = os.waitpid(slot.pid, os.WNOHANG)
            code = supervisor.code_of(status)
        except ChildProcessError:  # it ended just before its supervisor, which collected it
            pid, code = slot.pid, left_status(slot.process["folder"])
        if pid == 0:
            return True
        supervisor.kill_group(slot.pid, signal.SIGKILL)  # processes that it left
        shutil.rmtree(slot.process["folder"], ignore_errors=True)
        self._ended(slot, code, describe(code), now)
        return False

    def _gone(self, slot: WorkerSlot, now: float) -> None:
        """Handle the end, with an unknown status, of a worker that had no connection."""
        if self._ending is not None and not slot.known_end:
            slot.state = SlotState.FINISHED
            return
        with_host = slot.gone_with_host
        how = "has died with its host, which has started again" if with_host else "ended unseen"
        failed = bool(slot.known_end or with_host)  # otherwise it may have finished
        self._ended(slot, -signal.SIGKILL, slot.known_end or how, now, failed)
        if not failed and slot.state == SlotState.WAITING:
            slot.unseen, slot.ended, slot.due = True, now, now + UNSEEN_SECONDS

    def _ended(
        self, slot: WorkerSlot, status: int, death: str, now: float, failed: bool = True
    ) -> None:
        """Handle the end of a slot's process.

        ``failed`` is whether a status other than 0 certainly shows a failure.
        """
        if self.runner.stops:
            slot.state = SlotState.DEAD
        elif status in (0, CAME_LATE):
            slot.state = SlotState.FINISHED
            if self._ending is None:
                self._begin_ending(slot.full_name if status == 0 else "training", now)
            if status == 0 and self._ending.clock == math.inf:
                self._ending.first, self._ending.clock = slot.full_name, now
        elif self._ending is not None:
            slot.state, slot.status, slot.death = SlotState.DEAD, status, death
            self._ending.note(slot, status)
            self.runner.say(f"{slot.full_name} {death} after {self._ending.first} had finished")
        else:
            if failed and not slot.in_doubt:
                slot.failed = now
            slot.died(status, death, now, self._rules.max_restarts)
            limit = self._rules.max_restarts
            if slot.state == SlotState.WAITING:
                self.runner.say(f"{slot.full_name} {death}; restart {slot.restarts} of {limit}")
            elif sum(one.may_run for one in self._slots) >= self._rules.min_workers:
                self.runner.say(
                    f"{slot.full_name} {death}; it is not started again (--max-restarts {limit}), "
                    "the job goes on without it"
                )
        self._publish_end(slot)

    def _begin_ending(self, first: str, now: float) -> None:
        self._ending = JobEnding(now, first)
        for slot in self._slots:
            if slot.state == SlotState.WAITING and slot.unseen:
                slot.state = SlotState.FINISHED  # its end is unknown, and training has finished
            elif slot.state == SlotState.WAITING:
                slot.state = SlotState.DEAD
                self._ending.note(slot, slot.status)
                self.runner.say(f"{slot.full_name} is not started again: {first} has finished")

    def report(self, running: Running, report: dict) -> None:
        """Handle a supervisor's report about a worker."""
        slot = self._slot_of(running)
        if slot is None:
            return
        if "pid" in report:
            slot.set_process(report)
            self._send_ended_slots(slot)
        elif "watched" in report:
            self._send_ended_slots(slot)
            if not slot.known_end:
                slot.state = SlotState.RUNNING
                self.runner.say(f"connected to {slot.full_name} again")
        elif "elsewhere" in report:
            if not slot.elsewhere:
                slot.elsewhere = True
                self.runner.say(
                    f"{slot.task.means} has reached another host or container than the one of "
                    f"{slot.full_name}, which may still run; trying again"
                )
        else:
            slot.left_processes = bool(report.get("left"))
            if "exit" in report:
                slot.reported = report["exit"]
            else:
                slot.gone_with_host = report["restarted"]
            self.runner.send(running, b"DONE\n")


def left_status(folder: str) -> int:
    """Return the status that a supervisor left of its worker, as Popen's returncode."""
    try:
        return int(read_private(os.path.join(folder, "status")))
    except (OSError, ValueError):
        return -signal.SIGKILL
