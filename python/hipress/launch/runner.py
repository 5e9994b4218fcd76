"""Runner of a job's processes: it starts them, prints their output, and ends them.

The policy decides when they end.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import secrets
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

from hipress.base import process_table

from . import supervisor
from .bootstrap import message, python_command, supervisor_program
from .job import RANKS, LaunchTask
from .launch_error import LaunchError
from .output import STDERR, STDOUT, LineSplitter, Printer, Stalled

_RANK_LINE = re.compile(rb"\[(scheduler|(?:server|worker) \d+)\] (.*)", re.DOTALL)


@dataclass
class Running:
    """A started task: its supervisor, or the command that starts it on another host."""

    task: LaunchTask
    process: subprocess.Popen
    started: float
    streams: dict[int, LineSplitter] = field(default_factory=dict)
    #: Status of this process, as Popen's returncode, once it has ended.
    status: int | None = None
    #: Status of the supervised command, as the supervisor has reported it.
    reported: int | None = None
    #: Whether it watches a command that another supervisor has started.
    watches: bool = False
    #: Bytes that its standard input has not accepted yet.
    unsent: bytes = b""


class Policy:
    """Policy that decides what the end of a process means for the job.

    ``StopAtFailure`` ends the job at its first failure, ``RestartWorkers`` (elastic jobs) starts
    failed workers again. Times are of time.monotonic().
    """

    runner: Runner

    def start(self, task: LaunchTask) -> None:
        """Start a task of the job."""
        self.runner.start(task)

    def report(self, running: Running, report: dict) -> None:
        """Handle a supervisor's report."""

    def ended(self, running: Running, now: float) -> None:
        """Handle the end of a started process. All of its output has been read."""

    def step(self, now: float) -> None:
        """Do what is due, such as stopping the job, with :meth:`Runner.stop`, or a restart."""

    def pause(self, now: float) -> float:
        """Return the seconds until something is due, at limit 0.5."""
        return 0.5

    def continues(self, now: float) -> bool:
        """Return whether the job is not over."""
        return bool(self.runner.running)

    def command(self, command: bytes) -> None:
        """Send TERM or KILL to processes that have no supervisor under this launcher."""

    def result(self) -> int:
        """Return the exit status of a job that was not stopped."""


class Runner:
    """Runner that starts tasks and watches them until the job ends.

    Use it once, in the main thread.

    Args:
        grace: Seconds from SIGTERM to SIGKILL when the job is stopped.
        timeout: Seconds after which the job is stopped.
    """

    def __init__(
        self, printer: Printer, policy: Policy, grace: float = 5.0, timeout: float | None = None
    ) -> None:
        self.word = "hipress-" + secrets.token_hex(8)
        """First word of the supervisors' reports."""
        self.running: list[Running] = []
        """Processes that have not ended."""
        self.verdict: int | None = None
        """Exit status, once the job is being stopped or given up."""
        self._printer, self._policy, self._grace, self._timeout = printer, policy, grace, timeout
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._handled = 0  # signals that have been handled
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._unwritten: dict[int, OSError] = {}  # why nothing more is written, by stream
        self._lossy: set[int] = set()  # streams that have lost output, for example on a full disk
        self._deadline = math.inf
        self._only_here = True
        printer.hurries = lambda: (
            bool(self._signals) or self.stops or time.monotonic() >= self._deadline
        )
        policy.runner = self

    @property
    def stops(self) -> bool:
        """Whether the job is being stopped."""
        return self._term_at is not None

    def run(self, tasks: list[LaunchTask]) -> int:
        """Run the tasks and return the exit status for the shell."""
        allow_files(4 * len(tasks) + 100)  # a process takes three pipes
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._selector.register(read, selectors.EVENT_READ, None)
        numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        # The command of a supervisor that is killed becomes a child of this process.
        supervisor.prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1)

        def on_signal(number: int, _frame: object) -> None:
            if number != signal.SIGCHLD:
                self._signals.append(number)

        handlers = {number: signal.signal(number, on_signal) for number in numbers}
        old_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        try:
            if self._timeout is not None:
                self._deadline = time.monotonic() + self._timeout
            self._only_here = all(task.via is None for task in tasks)
            for task in tasks:
                if self._signals:
                    break
                self._policy.start(task)
            return self._watch()
        except LaunchError as error:
            self.say(str(error), "bold red")
            return 1
        finally:
            self._end_all()
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            self._selector.close()
            os.close(read)
            os.close(write)

    # Starting and stopping

    def start(self, task: LaunchTask, **more: object) -> Running:
        """Start a task's supervisor."""
        if task.host and any(other.task.host == task.host for other in self.running):
            time.sleep(0.03)  # sshd drops connections at random when too many arrive at once
        try:
            process = subprocess.Popen(
                task.via or python_command(sys.executable),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:  # such as too many open files, or processes
            raise LaunchError(f"cannot start {task.name}: {error.strerror}") from error
        running = Running(task, process, time.monotonic(), watches="watch" in more)
        self.running.append(running)
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        spec = {**task.spec, "word": self.word, **more}
        if task.ranks is not None:
            table = json.dumps({**task.ranks, "word": self.word}).encode()
            spec["input"] = (supervisor_program() + message(table)).decode()
        self.send(running, supervisor_program() + message(json.dumps(spec).encode()))
        for stream, pipe in ((STDOUT, process.stdout), (STDERR, process.stderr)):
            running.streams[stream] = LineSplitter(self.word if stream == STDERR else "")
            self._selector.register(pipe, selectors.EVENT_READ, (running, stream))
        return running

    @staticmethod
    def send(running: Running, data: bytes) -> None:
        """Send data to a supervisor, some of it later if the supervisor does not read."""
        running.unsent += data
        try:
            while running.unsent:
                sent = os.write(running.process.stdin.fileno(), running.unsent)
                running.unsent = running.unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            running.unsent = b""  # it has died: its status shows that

    def stop(self, verdict: int, now: float, patience: float = 0.0) -> None:
        """End the job with a verdict: SIGTERM after ``patience`` seconds, then SIGKILL."""
        if self.verdict is None:
            self.verdict = verdict
        term_at = now + patience
        if self._term_at is None or term_at < self._term_at:
            self._term_at = term_at

    def _command(self, command: bytes) -> None:
        for running in self.running:
            self.send(running, command + b"\n")
        self._policy.command(command)

    def _enforce(self, now: float) -> None:
        """Send SIGTERM and SIGKILL when they are due."""
        if self._term_at is not None and self._kill_at is None and now >= self._term_at:
            self._command(b"TERM")
            self._kill_at = now + self._grace
        if self._kill_at is not None and now >= self._kill_at:
            self._command(b"KILL")
            # A connection that does not work is closed. The other end's supervisor sees that.
            for running in self.running:
                if now >= max(self._kill_at, running.started) + 5.0:
                    running.process.kill()

    def _end_all(self) -> None:
        """End everything at once. Usually nothing is left to end."""
        for running in self.running:
            if running.watches and not self.stops:
                running.process.kill()  # only the connection: the worker may be at its end
            elif running.process.poll() is None:
                self.send(running, b"KILL\n")
            running.process.stdin.close()  # its supervisor kills all when this channel ends
        for running in self.running:
            try:
                running.process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                running.process.kill()
            running.process.stdout.close()
            running.process.stderr.close()
        if self._only_here:  # otherwise it may be an ssh process that other jobs need
            supervisor.kill_all(process_table.descendants(), signal.SIGKILL)

    # Watching

    def _watch(self) -> int:
        policy = self._policy
        while True:
            now = time.monotonic()
            for running in list(self.running):
                if running.process.poll() is not None:
                    running.status = running.process.returncode
                    self.close(running)
                    policy.ended(running, now)
            for running in self.running:
                if running.unsent:
                    self.send(running, b"")
            self._handle_signals(now)
            policy.step(now)
            if self.verdict is None:
                self._check_limits(now)
            self._enforce(now)
            if not policy.continues(now):
                break
            hurries = self.stops or any(running.unsent for running in self.running)
            self._pump(max(0.0, min(0.05 if hurries else 0.5, policy.pause(now))))
        return policy.result() if self.verdict is None else self.verdict

    def close(self, running: Running) -> None:
        """Print the rest of a process's output and close its pipes."""
        for stream, pipe in ((STDOUT, running.process.stdout), (STDERR, running.process.stderr)):
            registered = self._selector.get_map()
            while pipe in registered and self._copy(pipe, running, stream):
                pass
            if pipe in registered:  # a process that it has left may keep the pipe open
                self._selector.unregister(pipe)
                self._print(running, stream, running.streams[stream].finish())
            pipe.close()
        running.process.stdin.close()
        self.running.remove(running)

    def _handle_signals(self, now: float) -> None:
        """Handle the next signal, if there is one. Others wait for the next call."""
        if len(self._signals) <= self._handled:
            return
        number = self._signals[self._handled]
        name = signal.Signals(number).name
        if self._handled:
            self.say(f"{name} again; killing everything at once")
            self._kill_at = now
        else:
            self.say(f"{name}; stopping the job")
        self._handled += 1
        self.stop(128 + number, now)

    def _check_limits(self, now: float) -> None:
        """Stop the job at its time limit, or without a message if its output has no reader."""
        if now >= self._deadline:
            self.say(f"the job has not ended within {self._timeout:g} s; stopping it")
            self.stop(124, now)
            return
        for error in list(self._unwritten.values()):
            if isinstance(error, BrokenPipeError):
                self.stop(128 + signal.SIGPIPE, now)

    # Output

    def say(self, text: str, style: str = "bold yellow") -> None:
        """Print a message of the launcher to standard error."""
        if STDERR not in self._unwritten:
            try:
                self._printer.message(text, style)
            except OSError as error:
                self._cannot_write(STDERR, error)

    def _pump(self, timeout: float) -> None:
        """Wait for output, a signal or a child's end, and print what there is."""
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                try:
                    os.read(key.fd, 4096)
                except BlockingIOError:
                    pass
            else:
                self._copy(key.fileobj, *key.data)

    def _copy(self, pipe, running: Running, stream: int) -> bool:
        """Print what a pipe has; return False if there was nothing."""
        try:
            data = os.read(pipe.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        splitter = running.streams[stream]
        if data:
            lines = splitter.feed(data)
            self.take_reports(running, splitter)
            self._print(running, stream, lines)
        else:
            self._selector.unregister(pipe)
            self._print(running, stream, splitter.finish())
        return bool(data)

    def take_reports(self, running: Running, splitter: LineSplitter) -> None:
        """Hand the reports among a process's lines to the policy."""
        reports, splitter.reports = splitter.reports, []
        for text in reports:
            try:
                report = json.loads(text)
            except ValueError:
                continue  # the connection broke within it
            self._policy.report(running, report)

    def _print(self, running: Running, stream: int, lines: list[bytes]) -> None:
        if stream in self._unwritten:
            return
        try:
            if running.task.role != RANKS:
                self._printer.lines(running.task.name, stream, lines)
                return
            for line in lines:  # output of srun, which prefixes lines with names
                found = _RANK_LINE.fullmatch(line)
                name, text = (found[1].decode(), found[2]) if found else (running.task.name, line)
                self._printer.lines(name, stream, [text])
        except OSError as error:
            self._cannot_write(stream, error)

    def _cannot_write(self, stream: int, error: OSError) -> None:
        """Handle a failed write.

        If there is no reader, nothing more is written. If the disk is full, the lines that do not
        fit are lost, and the job continues.
        """
        if isinstance(error, (BrokenPipeError, Stalled)):
            self._unwritten[stream] = error
        elif stream not in self._lossy:
            self._lossy.add(stream)
            name = "standard error" if stream == STDERR else "standard output"
            self.say(
                f"cannot write to {name}: {error.strerror}; the job continues, and its output is "
                "lost until it can be written"
            )


def allow_files(count: int) -> None:
    """Allow this process ``count`` open files, or as many as the hard limit allows.

    Processes that it starts inherit the limit, so a soft limit that suffices is not changed:
    select() relies on it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
