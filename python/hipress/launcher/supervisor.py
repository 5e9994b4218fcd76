"""Runs one process of a job and leaves nothing of it behind, whatever happens.

Stands alone (standard library, Python 3.6 or newer): the launcher runs this file on its own
machine and sends its text over ssh to others. In its own session, it starts the command as a
session of its own, forwards stop requests, and ends, with SIGKILL where it must, every process
that descends from the command, even those that became daemons.

Standard input is the control channel: a JSON line that describes the process (argv, env, cwd,
name; never visible in the process list), then lines "TERM" or "KILL". Its end means that the
launcher is gone: everything is killed. Under an srun that starts several processes standard input
has one line, a table of all of them, and the death of the parent takes the channel's place.

The exit status is the command's, or 128 + signal; with "mimic", it dies of the same signal.

With "program", that text of Python runs in its place: elastic_supervisor.py, of elastic jobs, which
builds on this module.
"""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LEFTOVER_SECONDS = 1.0  # seconds from SIGTERM to SIGKILL for what the command left behind
STOP_SECONDS = 5.0  # the same for the command itself, where no launcher sends KILL


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def parents():
    """pid -> parent's pid of every process."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The command's name, in parentheses, may hold anything.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            # Other threads of a zombie may run: its first thread may end before them.
            if fields[0] != b"Z" or int(fields[17]) > 1:
                table[int(entry)] = int(fields[1])
    return table


def descendants():
    table = parents()
    found, level = [], {os.getpid()}
    while level:
        level = {pid for pid, parent in table.items() if parent in level}
        found.extend(level)
    return found


def kill_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


class Relay:
    """Copies one stream of the command line by line, each with a prefix and in one write."""

    def __init__(self, source, target, prefix):
        self.source, self.target, self.prefix, self.rest = source, target, prefix, b""
        self.next_state = 0.0

    def copy(self):
        """Returns False at the end of the stream."""
        data = os.read(self.source, 65536)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        if not data and self.rest:
            lines.append(self.rest)
        elif b"\r" in self.rest[:-1]:
            # A progress bar, which rewrites its line: a state of it now and then, and the last.
            state, _, rest = self.rest[:-1].rpartition(b"\r")
            self.rest = rest + self.rest[-1:]
            if state and time.monotonic() >= self.next_state:
                self.next_state = time.monotonic() + 1.0
                lines.append(state.rpartition(b"\r")[2])
        elif len(self.rest) > 1 << 20:
            lines.append(self.rest)
            self.rest = b""
        for line in lines:
            os.write(self.target, self.prefix + line + b"\n")
        return bool(data)


class Supervisor:
    def __init__(self, spec, control, relayed=False):
        self.spec, self.control, self.relayed = spec, control, relayed
        self.child, self.status = None, None
        self.kill_at = None
        self.pending = b""
        self.relays = []
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        quiet = {"warn_on_full_buffer": False} if sys.version_info >= (3, 7) else {}
        signal.set_wakeup_fd(wake_write, **quiet)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, lambda *_: self.stop())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    def start(self):
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        env = dict(os.environ, **self.spec["env"])
        out, err = self.outputs()
        given = self.spec.get("input")
        try:
            self.child = subprocess.Popen(
                self.spec["argv"], env=env, cwd=self.spec.get("cwd"),
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=out, stderr=err, start_new_session=True, preexec_fn=self.in_child)
        except (OSError, subprocess.SubprocessError) as error:
            # The directory is checked in the child, where its error looks like the command's.
            what = self.spec["argv"][0]
            if self.spec.get("cwd") and not os.path.isdir(self.spec["cwd"]):
                what = self.spec["cwd"]
            reason = getattr(error, "strerror", None) or error
            if "/" not in what and os.path.isfile(os.path.join(self.spec.get("cwd") or "", what)):
                reason = f"it is not on PATH; for the file here write ./{what} or python {what}"
            sys.stderr.write(f"hipress-launch: cannot run '{what}': {reason}\n")
            sys.exit(126 if isinstance(error, PermissionError) else 127)
        if given is not None:
            threading.Thread(target=self.give_input, args=(given.encode(),), daemon=True).start()
        self.started()

    def give_input(self, data):
        try:
            with self.child.stdin as stdin:
                stdin.write(data)
        except OSError:
            pass  # the process has died; its status shows that

    @staticmethod
    def in_child():
        # Should somebody kill this supervisor, the command goes with it.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def outputs(self):
        """Where the command's stdout and stderr go; None: where this process's own go."""
        return (subprocess.PIPE, subprocess.PIPE) if self.relayed else (None, None)

    def started(self):
        if self.relayed:
            prefix = f"[{self.spec['name']}] ".encode()
            self.relays = [Relay(self.child.stdout.fileno(), 1, prefix),
                           Relay(self.child.stderr.fileno(), 2, prefix)]

    def stop(self):
        """SIGTERM to the command; SIGCONT lets a stopped one see it."""
        if self.child is not None and self.status is None:
            for number in (signal.SIGTERM, signal.SIGCONT):
                try:
                    os.killpg(self.child.pid, number)
                except OSError:
                    pass
        if self.control is None and self.kill_at is None:
            self.kill_at = time.monotonic() + STOP_SECONDS

    def kill(self):
        kill_all(descendants(), signal.SIGKILL)

    def read_control(self):
        data = os.read(self.control, 4096)
        lines = (self.pending + data).split(b"\n")
        self.pending = lines.pop()
        for line in lines:
            self.obey(line)
        if not data:
            self.control = None
            self.orphaned()

    def obey(self, line):
        """A line of the launcher's."""
        if line == b"TERM":
            self.stop()
        elif line == b"KILL":
            self.kill()

    def orphaned(self):
        """The launcher is gone."""
        self.kill()

    def reap(self):
        """Collects ended children: the command, and orphans that were handed to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child.pid:
                self.status = status

    def serve(self, timeout):
        """Handles what comes within `timeout` seconds (None: until something does)."""
        sources = [self.wake] + [relay.source for relay in self.relays]
        if self.control is not None:
            sources.append(self.control)
        ready = select.select(sources, [], [], timeout)[0]
        if self.wake in ready:
            try:
                os.read(self.wake, 4096)
            except OSError:
                pass
        if self.control is not None and self.control in ready:
            self.read_control()
        self.relays = [relay for relay in self.relays
                       if relay.source not in ready or relay.copy()]
        self.reap()

    def run(self):
        self.start()
        self.reap()
        while self.status is None:
            timeout = None
            if self.kill_at is not None:
                timeout = max(0.0, self.kill_at - time.monotonic())
                if timeout == 0.0:
                    self.kill()
                    timeout = 1.0
            self.serve(timeout)
        self.command_ended()
        self.clear()
        while self.relays:
            self.serve(1.0)
        return self.status

    def command_ended(self):
        """Its status is known."""

    def clear(self):
        """Ends what the command left behind."""
        kill_at, number = time.monotonic() + LEFTOVER_SECONDS, signal.SIGTERM
        give_up = kill_at + 5.0
        while time.monotonic() < give_up:
            left = descendants()
            if not left:
                return
            if time.monotonic() >= kill_at:
                number = signal.SIGKILL
            kill_all(left, number)
            self.serve(0.02)


def code_of(status):
    """A status of waitpid() as Popen's returncode."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def leave(status, mimic):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if mimic:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def report(spec, status):
    """Report the command's end to the launcher."""
    os.write(2, f"hipress-rank-exit {spec['name']} {code_of(status)}\n".encode())


def read_spec():
    """The description on standard input; nothing beyond its line is consumed."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)  # the launcher died before it told us what to run
        line += byte
    return json.loads(line.decode())


def run_rank():
    """One of srun's processes, which finds its role and reports its end on stderr."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    table = read_spec()
    role, index = table["ranks"][int(os.environ["SLURM_PROCID"])]
    env = dict(table["env"], **table["roles"][role]["env"])
    env[f"DMLC_{role.upper()}_ID"] = str(index)
    spec = {"name": f"{role} {index}", "argv": table["roles"][role]["argv"], "env": env,
            "cwd": table["cwd"]}
    status = Supervisor(spec, None, relayed=True).run()
    report(spec, status)
    leave(status, False)


def main():
    if sys.argv[1:] == ["rank"]:
        run_rank()
    spec = read_spec()
    if spec.get("program"):
        sys.modules["supervisor"] = sys.modules[__name__]
        program = {"__name__": "elastic_supervisor"}
        exec(spec.pop("program"), program)
        program["main"](spec)
        os._exit(0)
    status = Supervisor(spec, 0).run()
    if spec.get("report"):
        report(spec, status)
        os._exit(0)
    leave(status, spec.get("mimic", False))


if __name__ == "__main__":
    main()
