"""Runs the processes of a job, prints what they say and ends them all when one fails."""

from __future__ import annotations

import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

from . import supervisor
from .bootstrap import BOOTSTRAP, message, supervisor_program
from .drain import Drain
from .ends import Failure, shell_status
from .errors import LaunchError
from .job import WORKER
from .limits import allow_files
from .output import STDERR, STDOUT, LineSplitter, Printer, Stalled

RANKS = "ranks"  # role of srun: one process here starts all servers and workers
ROOT_CAUSE_SECONDS = 0.25  # seconds to wait for the cause behind the first visible failure
SURVIVORS_SECONDS = 3.0  # seconds in which survivors may report the failure and end by themselves
_RANK_LINE = re.compile(rb"\[(scheduler|(?:server|worker) \d+)\] (.*)", re.DOTALL)


@dataclass
class Task:
    """One supervised process: here, or on another host through ``via``."""

    name: str
    role: str
    #: What the supervisor runs: argv, env (additions), cwd.
    spec: dict
    #: The command that starts the supervisor; default: here.
    via: list[str] | None = None
    where: str = ""
    #: When ``via`` ends by itself, what it started is to end, too.
    contained: bool = False
    #: Table of the processes that the command, an srun, starts: each has its own supervisor.
    ranks: dict | None = None

    @property
    def means(self) -> str:
        """What starts the supervisor: ssh, mpirun or srun."""
        return os.path.basename(self.via[0]) if self.via else ""


@dataclass
class Running:
    """A started task."""

    task: Task
    process: subprocess.Popen
    started: float
    streams: dict[int, LineSplitter] = field(default_factory=dict)
    status: int | None = None  # as Popen's: negative for a signal
    reported: int | None = None  # the status in the supervisor's report
    ended: float = 0.0
    unsent: bytes = b""  # what its standard input has not taken yet


class Runner:
    """Starts tasks and watches them to the end of the job. Use once, in the main thread."""

    def __init__(self, printer: Printer, grace: float = 5.0, timeout: float | None = None) -> None:
        self._printer, self._grace, self._timeout = printer, grace, timeout
        self._word = "hipress-" + secrets.token_hex(8)  # begins reports of supervisors
        self._selector = selectors.DefaultSelector()
        self._running: list[Running] = []
        self._failures: list[Failure] = []
        self._signals: list[int] = []
        self._verdict: int | None = None  # exit status, once the job is known to have failed
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._unwritten: dict[int, OSError] = {}  # why nothing more is written, by stream
        self._lossy: set[int] = set()  # streams that have lost output, for example on a full disk
        self._deadline: float | None = None
        self._only_here = True
        printer.hurries = self._hurries
        self._early: dict[str, float] = {}

    def run(self, tasks: list[Task]) -> int:
        """Runs the tasks; returns the exit status for the shell."""
        try:
            return self._run(tasks)
        except LaunchError as error:
            self._say(str(error), "bold red")
            return 1

    def _run(self, tasks: list[Task]) -> int:
        allow_files(4 * len(tasks) + 100)  # a process takes three pipes
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._selector.register(read, selectors.EVENT_READ, None)
        numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        # Should somebody kill a supervisor, what it watched becomes ours.
        supervisor.prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1)
        handlers = {number: signal.signal(number, self._on_signal) for number in numbers}
        old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        try:
            if self._timeout is not None:
                self._deadline = time.monotonic() + self._timeout
            self._only_here = all(task.via is None for task in tasks)
            for task in tasks:
                if self._signals:
                    break
                self._start(task)
            return self._watch()
        finally:
            self._leave_nothing()
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            self._selector.close()
            os.close(read)
            os.close(write)

    # Starting and stopping

    def _start(self, task: Task) -> None:
        if task.where and any(other.task.where == task.where for other in self._running):
            time.sleep(0.03)  # sshd drops connections at random when too many come at once
        argv = task.via or [sys.executable, "-I", "-S", "-c", BOOTSTRAP]
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True, bufsize=0,
            )
        except OSError as error:  # such as too many open files, or processes
            raise LaunchError(f"cannot start {task.name}: {error.strerror}") from error
        running = Running(task, process, time.monotonic())
        self._running.append(running)
        spec = {**task.spec, "word": self._word}
        if task.ranks is not None:
            table = json.dumps({**task.ranks, "word": self._word}).encode()
            spec["input"] = (supervisor_program() + message(table)).decode()
        self._send(running, supervisor_program() + message(json.dumps(spec).encode()))
        for stream, pipe in ((STDOUT, process.stdout), (STDERR, process.stderr)):
            os.set_blocking(pipe.fileno(), False)
            running.streams[stream] = LineSplitter(self._word if stream == STDERR else "")
            self._selector.register(pipe, selectors.EVENT_READ, (running, stream))

    @staticmethod
    def _send(running: Running, data: bytes) -> None:
        running.unsent += data
        Runner._send_rest(running)

    @staticmethod
    def _send_rest(running: Running) -> None:
        """Write what has not been sent. If the pipe does not block, some may be left."""
        try:
            while running.unsent:
                sent = os.write(running.process.stdin.fileno(), running.unsent)
                running.unsent = running.unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            running.unsent = b""  # it has died: its status tells

    def _stop(self, verdict: int, now: float, patience: float = 0.0) -> None:
        """Ends the job with a verdict: SIGTERM after ``patience`` seconds, then SIGKILL."""
        if self._verdict is None:
            self._verdict = verdict
        term_at = now + patience
        if self._term_at is None or term_at < self._term_at:
            self._term_at = term_at

    def _command(self, command: bytes) -> None:
        for running in self._running:
            if running.status is None:
                self._send(running, command + b"\n")

    def _leave_nothing(self) -> None:
        """Ends everything at once; the usual path has ended everything before."""
        for running in self._running:
            if running.process.poll() is None:
                self._send(running, b"KILL\n")
            running.process.stdin.close()  # its supervisor kills all when this channel ends
        for running in self._running:
            try:
                running.process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                running.process.kill()
            running.process.stdout.close()
            running.process.stderr.close()
        if self._only_here:  # else what is left may be ssh's, for others of this user's
            supervisor.kill_all(supervisor.descendants(), signal.SIGKILL)

    # Watching

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(number)

    def _watch(self) -> int:
        handled, drain = 0, None
        while True:
            now = time.monotonic()
            self._reap(now)
            alive = [running for running in self._running if running.status is None]
            handled = self._heed_signals(handled, now)
            if self._verdict is None:
                if self._failures and now >= self._due():
                    self._report(self._root_cause(), len(alive))
                    self._stop(shell_status(self._root_cause().status), now, SURVIVORS_SECONDS)
                else:
                    self._heed_limits(now)
            if not alive:
                break
            workers = [one for one in alive if one.task.role in (WORKER, RANKS)]
            if not workers and not self._failures and self._term_at is None:
                drain = drain or Drain(now)
                self._drain(drain, ", ".join(running.task.name for running in alive), now)
            self._enforce(now)
            self._pump(0.05 if self._term_at or self._failures else 0.5)
        self._drain_output()
        if self._verdict is None and self._failures:
            self._report(self._root_cause(), 0)
            return shell_status(self._root_cause().status)
        return self._verdict or 0

    def _drain(self, drain: Drain, names: str, now: float) -> None:
        """Stops servers and the scheduler that have nothing to do without workers."""
        renewals = drain.renewals
        if drain.over(now):
            took = now - drain.began
            self._say(f"{names} still ran {took:.1f} s after the last worker; stopping")
            self._stop(0, now)
        elif renewals == 0 < drain.renewals:
            self._say(f"the last worker has ended, {names} still computes; waiting for it")

    def _enforce(self, now: float) -> None:
        if self._term_at is not None and self._kill_at is None and now >= self._term_at:
            self._command(b"TERM")
            self._kill_at = now + self._grace
        if self._kill_at is not None and now >= self._kill_at:
            self._command(b"KILL")
            # A connection that no longer works: give up on it, the other end sees it close.
            for running in self._running:
                tried_since = max(self._kill_at, running.started)
                if running.status is None and now >= tried_since + 5.0:
                    running.process.kill()

    def _heed_signals(self, handled: int, now: float) -> int:
        """Handles signal number ``handled``, if it has come; returns how many have been handled.
        The next one is not lost, however soon it comes."""
        if len(self._signals) <= handled:
            return handled
        self._interrupted(self._signals[handled], again=handled > 0, now=now)
        return handled + 1

    def _interrupted(self, number: int, again: bool, now: float) -> None:
        name = signal.Signals(number).name
        if again:
            self._say(f"{name} again; killing everything at once")
            self._kill_at = now
        else:
            self._say(f"{name}; stopping the job")
        self._stop(128 + number, now)

    def _reap(self, now: float) -> None:
        for running in self._running:
            if running.status is None and running.process.poll() is not None:
                self._read_rest(running)
                code = running.process.returncode
                running.status = code if running.reported is None else running.reported
                running.ended = now
                if running.status != 0 and self._term_at is None:
                    self._fail(running.task.name, running.task.where, running)
                elif running.status == 0 and running.task.role not in (WORKER, RANKS):
                    self._early[running.task.name] = now

    def _fail(self, name: str, where: str, running: Running, status: int | None = None) -> None:
        code = running.status if status is None else status
        self._failures.append(
            Failure(name, where, code or 0, time.monotonic(), running.started))

    def _causes(self) -> list[Failure]:
        """Failures that may be a cause. Servers and the scheduler end with 1 as soon as a worker is
        gone; a worker with an error in its script has then yet to end as a process. If none has,
        mpirun and srun only pass a server's failure on, as the SIGTERM to the others does."""
        told = [one for one in self._failures
                if one.status == 1 and one.name.split()[0] in ("server", "scheduler")]
        causes = [one for one in self._failures if one not in told]
        if told:
            causes = [one for one in causes if one.status != -signal.SIGTERM
                      and one.name not in ("mpirun", "srun")]
        return causes

    def _due(self) -> float:
        """When the failure is reported: what is behind the first one may come to light after it."""
        causes = self._causes()
        if causes:
            return causes[0].ended + ROOT_CAUSE_SECONDS
        return self._failures[0].ended + SURVIVORS_SECONDS

    def _root_cause(self) -> Failure:
        """The failure behind the others: the first process killed by a signal within the window
        of the first failure, or else the first failure. A SIGTERM is no sign: mpirun sends it to
        the survivors. mpirun and srun themselves only pass a failure on."""
        failures = self._causes() or self._failures
        window = failures[0].ended + ROOT_CAUSE_SECONDS
        near = [failure for failure in failures if failure.ended <= window]
        near = [one for one in near if one.name not in ("mpirun", "srun")] or near
        crashes = [one for one in near if one.status < 0 and one.status != -signal.SIGTERM]
        return (crashes or near)[0]

    def _report(self, failure: Failure, alive: int) -> None:
        left = ""
        others = [f"{name} had ended {failure.ended - when:.1f} s before"
                  for name, when in self._early.items() if when < failure.ended]
        if others:
            left = f" ({', '.join(others)})"
        stopping = f"; stopping the other {alive} processes" if alive > 1 else (
            "; stopping the other process" if alive else "")
        self._say(f"{failure}{left}{stopping}", "bold red")

    def _is_late(self, now: float) -> bool:
        return self._deadline is not None and now >= self._deadline

    def _hurries(self) -> bool:
        """Whether there is more to do than to wait for whoever reads the output."""
        asked = self._signals or self._term_at is not None
        return bool(asked) or self._is_late(time.monotonic())

    def _heed_limits(self, now: float) -> None:
        """Stop the job at its time limit, or without a message if its output has no reader."""
        if self._is_late(now):
            self._say(f"the job has not ended within {self._timeout:g} s; stopping it")
            self._stop(124, now)
            return
        for error in list(self._unwritten.values()):
            if isinstance(error, BrokenPipeError):
                self._stop(128 + signal.SIGPIPE, now)

    def _say(self, text: str, style: str = "bold yellow") -> None:
        if STDERR not in self._unwritten:
            try:
                self._printer.message(text, style)
            except OSError as error:
                self._cannot_write(STDERR, error)

    # Output

    def _pump(self, timeout: float) -> None:
        """Waits for output, a signal or a child's end, and prints what there is."""
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                try:
                    os.read(key.fd, 4096)
                except BlockingIOError:
                    pass
            else:
                self._copy(key.fileobj, *key.data)

    def _read_rest(self, running: Running) -> None:
        """Read the remaining output of an ended process."""
        for stream, pipe in ((STDOUT, running.process.stdout), (STDERR, running.process.stderr)):
            while pipe.fileno() in self._selector.get_map() and self._copy(pipe, running, stream):
                pass

    def _copy(self, pipe, running: Running, stream: int) -> bool:
        """Returns False if nothing came."""
        try:
            data = os.read(pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        splitter = running.streams[stream]
        if data:
            lines = splitter.feed(data)
            self._take_reports(running, splitter)
            self._print(running, stream, lines)
        else:
            self._selector.unregister(pipe)
            self._print(running, stream, splitter.finish())
        return bool(data)

    def _drain_output(self) -> None:
        """Prints what the ended processes left in their pipes. One that escaped its supervisor
        might keep a pipe open: after a second we stop waiting for its end."""
        deadline = time.monotonic() + 1.0
        while len(self._selector.get_map()) > 1 and time.monotonic() < deadline:
            self._pump(0.05)
        for key in self._selector.get_map().values():
            if key.data is not None:
                running, stream = key.data
                self._print(running, stream, running.streams[stream].finish())

    def _print(self, running: Running, stream: int, lines: list[bytes]) -> None:
        if stream in self._unwritten:
            return
        try:
            if running.task.role == RANKS:
                self._print_ranks(running, stream, lines)
            else:
                self._printer.lines(running.task.name, stream, lines)
        except OSError as error:
            self._cannot_write(stream, error)

    def _cannot_write(self, stream: int, error: OSError) -> None:
        """Handle a failed write. If there is no reader, nothing more is written. If the disk is
        full, the lines that do not fit are lost, and the job continues."""
        if isinstance(error, (BrokenPipeError, Stalled)):
            self._unwritten[stream] = error
        elif stream not in self._lossy:
            self._lossy.add(stream)
            name = "standard error" if stream == STDERR else "standard output"
            self._say(
                f"cannot write to {name}: {error.strerror}; the job continues, and its output is "
                "lost until it can be written"
            )

    def _take_reports(self, running: Running, splitter: LineSplitter) -> None:
        reports, splitter.reports = splitter.reports, []
        for text in reports:
            try:
                report = json.loads(text)
            except ValueError:
                continue  # the connection broke within it
            self._report_came(running, report)

    def _report_came(self, running: Running, report: dict) -> None:
        if "rank" not in report:
            running.reported = report["exit"]
        elif report["exit"] and self._term_at is None:
            self._fail(report["rank"], "", running, report["exit"])

    def _print_ranks(self, running: Running, stream: int, lines: list[bytes]) -> None:
        """Print output of srun, whose processes prefix their lines with their names."""
        for line in lines:
            prefixed = _RANK_LINE.fullmatch(line)
            if prefixed:
                self._printer.lines(prefixed[1].decode(), stream, [prefixed[2]])
            else:
                self._printer.lines(running.task.name, stream, [line])
