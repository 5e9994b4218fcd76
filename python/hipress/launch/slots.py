"""Slots of an elastic job: the state of each, and when its worker may be started again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto

from .failures import shell_status
from .job import Task
from .runner import Running

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds from a death to the restart
FIRST_CONNECT_DELAY, LONGEST_CONNECT_DELAY = 0.5, 30.0  # between attempts to connect again
LOST_SECONDS = 600.0  # a worker without a connection for so long is out of sight
UNSEEN_SECONDS = 10.0  # wait after an unknown status, since workers may finish together
AWAY_SECONDS = 30.0  # a host never reached for so long may be a wrong name: that costs restarts
STEADY_SECONDS = 10.0  # a worker that lives so long has recovered: the next delay is the first
LATE_SECONDS = 60.0  # a restarted worker may need so long until it trains
CANNOT_RUN = (126, 127)  # as a shell's: the command is not there, or may not be run
NOT_CONNECTED = 255  # ssh's


class State(Enum):
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
class Slot:
    """A slot and the worker in it. Times are of time.monotonic()."""

    task: Task
    running: Running | None = None
    state: State = State.RUNNING
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
    away: float | None = None
    reached: bool = False
    #: Its end in words, if that is certain but processes on its host may be left.
    fate: str = ""
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
    def name(self) -> str:
        return self.task.name

    @property
    def who(self) -> str:
        """Name of the worker, with its host if that is not this one."""
        return f"{self.name} on {self.task.where}" if self.task.where else self.name

    @property
    def runs(self) -> bool:
        """Whether a process is known to run."""
        return self.state in (State.RUNNING, State.ADOPTED)

    @property
    def may_run(self) -> bool:
        """Whether it may take part in training, now or later."""
        return self.runs or self.state in (State.LOST, State.WAITING)

    def started(self, running: Running, now: float) -> None:
        """Record that a process was started in this slot."""
        self.running, self.began, self.state = running, now, State.RUNNING
        self.process = self.reported = self.gone_with_host = None
        self.left_processes = self.elsewhere = self.ended_slots_due = False
        self.fate, self.in_doubt, self.unseen = "", self.unseen, False

    @property
    def pid(self) -> int | None:
        """The worker's process id, once it is known."""
        return self.process and self.process["pid"]

    def knows(self, process: dict) -> None:
        """Record the process that a supervisor has reported."""
        self.process, self.reached, self.away = process, True, None

    def put_off(self, status: int, now: float) -> bool:
        """Wait for the next attempt if the slot's host cannot be reached, which costs no restart.

        Returns:
            False, and nothing is changed, if the host is reached or was never reached.
        """
        if status != NOT_CONNECTED or self.task.via is None:
            return False
        if self.away is None:
            self.away, self.connect_delay = self.began, FIRST_CONNECT_DELAY
        elif not self.reached and now >= self.away + AWAY_SECONDS:
            return False
        else:
            self.connect_delay = min(2 * self.connect_delay, LONGEST_CONNECT_DELAY)
        self.state, self.due = State.WAITING, now + self.connect_delay
        self.unseen, self.in_doubt = self.in_doubt, False  # as before the attempt
        return True

    def lose(self, now: float) -> bool:
        """Record that there is no connection to the worker. Return whether there was one."""
        connected = self.state != State.LOST
        if connected:
            self.lost, self.connect_delay = now, FIRST_CONNECT_DELAY
        else:
            self.connect_delay = min(2 * self.connect_delay, LONGEST_CONNECT_DELAY)
        self.state, self.connect_due = State.LOST, now + self.connect_delay
        return connected

    @property
    def connects(self) -> bool:
        """Whether a connection to it is being made again."""
        return self.state == State.LOST and self.running.status is None

    def out_of_sight(self, now: float) -> bool:
        """Return whether the connection was lost long ago, or the exit status is unknown."""
        if self.state == State.WAITING and self.away is not None:
            return self.unseen or now >= self.away + LOST_SECONDS
        return self.unseen or (self.state == State.LOST and now >= self.lost + LOST_SECONDS)

    def shows_training(self, after: float) -> bool:
        """Return whether this slot shows that training continued after another process had ended.

        It does by a process from before that end, or by a failure since.
        """
        before = self.runs and not self.in_doubt and self.began < after
        return before or self.failed > after

    def settle(self, others: list[Slot], now: float) -> None:
        """End the doubt when an older process has run for long enough at the same time."""
        if self.in_doubt and self.runs and now >= self.began + LATE_SECONDS:
            self.in_doubt = not any(other.shows_training(self.began) for other in others)

    def died(self, status: int, death: str, now: float, limit: int) -> None:
        """Record a failure. The slot waits for a restart, if one of ``limit`` is left."""
        self.status, self.death = status, death
        if self.restarts >= limit or (self.pid is None and status in CANNOT_RUN):
            self.state, self.dead = State.DEAD, now
            return
        again = self.restarts and now - self.began < STEADY_SECONDS
        self.delay = min(LONGEST_DELAY, 2 * self.delay) if again else FIRST_DELAY
        self.due = now + self.delay
        self.restarts += 1
        self.state = State.WAITING

    def late(self, ending: float) -> bool:
        """Return whether the last process may have come too late to train.

        It has if it was restarted shortly before ``ending``, when the first worker finished.
        """
        last = self.restarts - (self.due > self.began)
        return last > 0 and self.began > ending - LATE_SECONDS


@dataclass
class Ending:
    """End of a job, after a worker has ended with 0 or has found training over."""

    since: float
    #: The worker that has finished first, or "training".
    first: str
    #: Time since which all workers must end: when one finished, which shows that they can.
    clock: float = math.inf
    #: Statuses of those that failed then, in order.
    failed: list[int] = field(default_factory=list)

    def note(self, slot: Slot, status: int) -> None:
        """Record a worker that has not finished, unless its host was not reached."""
        if slot.away is None and not slot.late(self.since):
            self.failed.append(shell_status(status))

    def note_stopped(self, slot: Slot, status: int, first: bool) -> None:
        """Record a worker that had to be stopped.

        A restarted worker may be far from its script's end, and has the final weights of the job.
        So it counts only if it has to save them.
        """
        if first or not slot.restarts:
            self.note(slot, status)
