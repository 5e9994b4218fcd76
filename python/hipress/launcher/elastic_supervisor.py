"""Runs a command that outlives this process and the launcher, or watches one that has.

Stands alone beside supervisor.py, as whose "program" it runs.

The end of standard input ends nothing. What the command writes goes to files of its own, which are
read from here: a file can be written to without a reader, a pipe cannot. The files are in memory,
so that a full disk does not end the command. Lines on standard error that begin with the word that
"elastic" gives are reports to the launcher, in JSON: which process the command is, and how it has
ended. The end of this supervisor alone would not tell whether the command has. Its own status is 0,
whatever the command's: mpirun and srun have much to say about any other. With "ignore_signals" it
passes no signal on: an mpirun without its launcher sends SIGTERM.

The command's status is also left in a folder, until the launcher says "DONE": the connection to it
may have broken. Then it connects again, with what was reported of the process as "watch", and the
process is watched to its end. If its supervisor was killed, nobody knows its status: it is gone,
and what it has left behind, which "marks" in the environment tell, is ended here. A connection may
also reach another host or container of the same name, where nothing shows whether the process runs.

The launcher also says which slots' processes have ended, in lines "ENDED" with JSON. They are left
in a file of the folder, which HIPRESS_ELASTIC_ENDED names to the command: evidence for its agent.
"""

import ctypes
import fcntl
import glob
import json
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
import time

from supervisor import Supervisor, code_of, descendants, kill_all

DONE_SECONDS = 5.0  # from the report of the command's end until the launcher has heard it
LEFTOVER_SECONDS = 5.0  # in which killed processes end
STATUS_SECONDS = 10.0  # from the command's end until a living supervisor has left its status


def boot_id():
    """Another text each time this machine is started."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def namespace():
    """Return the namespaces of process ids and start times; empty if they are not known."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return ""  # /proc belongs to another namespace
        spaces = [f"/proc/self/ns/{kind}" for kind in ("pid", "time")]
        return " ".join(os.readlink(space) for space in spaces if os.path.exists(space))
    except OSError:
        return ""


def machine():
    """Return a text that stays the same when this machine restarts; empty if there is none."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except (OSError, ValueError):
            continue
        if text:
            return f"{text} {os.uname()[1]}"  # cloned machines may have the same id
    return ""


def open_private(path):
    """Open a directory to which only this user has access; raise OSError for any other.

    Its name may be visible to others, who may make a directory of that name when a cleanup job has
    removed this user's.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    about = os.fstat(folder)
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(f"other users have access to {path}")
    return folder


class Process:
    """A process, which another one with its id is not.

    since: when it was started, in ticks since this machine was; None: it has ended.
    """

    def __init__(self, pid, since=None):
        self.pid = pid
        self.since = self.present() if since is None else since

    def present(self):
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        # The first thread may have ended before the process's other threads.
        ended = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
        return None if ended else int(fields[19])

    @property
    def runs(self):
        return self.since is not None and self.present() == self.since

    def kill(self, *numbers):
        """Signals its process group."""
        for number in numbers:
            try:
                if self.runs:
                    os.killpg(self.pid, number)
            except OSError:
                pass


class Output:
    """A stream of this process's own, to which only as much is written as it takes at once."""

    def __init__(self, target):
        self.target, self.last = target, b"\n"

    def write(self, data):
        """Returns how many bytes it has taken; all, once nobody reads any more."""
        sent = 0
        if self.target is None:
            return len(data)
        try:
            while sent < len(data) and select.select([], [self.target], [], 0)[1]:
                sent += os.write(self.target, data[sent:sent + select.PIPE_BUF])
        except OSError:
            self.target, sent = None, len(data)
        if sent:
            self.last = data[sent - 1:sent]
        return sent


def memory_file():
    """Return a file in memory; before Python 3.8, a temporary file on disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("hipress-output"), "r+b", 0)
    return tempfile.TemporaryFile(buffering=0)


class Tail:
    """A file that the command writes to; what comes is copied, and takes no space any more."""

    BLOCK = 1 << 20  # bytes that are given back to the file system at a time
    KEPT = 256 << 20  # most bytes that wait for a slow reader; older bytes are dropped

    def __init__(self, output):
        self.file, self.lost = memory_file(), 0
        # Several processes of the command may write: each at the end.
        flags = fcntl.fcntl(self.file, fcntl.F_GETFL)
        fcntl.fcntl(self.file, fcntl.F_SETFL, flags | os.O_APPEND)
        self.output, self.read, self.freed = output, 0, 0

    def copy(self, chunks=16):
        """Copies at most so many chunks; returns False if nothing was left."""
        self.limit()
        for _ in range(chunks):
            data = os.pread(self.file.fileno(), 65536, self.read)
            if not data:
                return False
            sent = self.write(data)
            self.read += sent
            if sent < len(data):
                break
        self.free()
        return True

    def limit(self):
        """Drop the oldest output if too much waits, and report that when the reader continues."""
        behind = os.fstat(self.file.fileno()).st_size - self.read
        if behind > self.KEPT:
            self.lost += behind - self.KEPT // 2
            self.read += behind - self.KEPT // 2
            self.free()
        if self.lost:
            text = f"\nhipress-launch: {self.lost} bytes of output were not read in time: lost\n"
            if self.output.write(text.encode()):
                self.lost = 0

    def write(self, data):
        return self.output.write(data)

    def free(self):
        """Punches a hole (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) where all is copied. A
        file system that cannot keeps the bytes until the command ends."""
        size = (self.read - self.freed) // self.BLOCK * self.BLOCK
        if size:
            call = getattr(ctypes.CDLL(None), "fallocate64", None)
            if call is not None:
                call(self.file.fileno(), 3, ctypes.c_longlong(self.freed), ctypes.c_longlong(size))
            self.freed += size


class Reader(Tail):
    """What a command writes from now on to such a file, which its supervisor, the keeper, reads and
    gives back, too, while that lives."""

    def __init__(self, pid, target, output, keeper):
        self.file, self.lost = open(f"/proc/{pid}/fd/{target}", "r+b", buffering=0), 0
        about = os.fstat(self.file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_nlink:
            raise OSError("the command has put another file in its place")
        self.output, self.keeper = output, keeper
        self.read = self.freed = about.st_size

    def write(self, data):
        """Zeros are what the supervisor has given back meanwhile."""
        zeros = len(data) - len(data.lstrip(b"\0"))
        return zeros or self.output.write(data.partition(b"\0")[0])

    def free(self):
        if not self.keeper.runs:
            super().free()


class ElasticSupervisor(Supervisor):
    """Its command outlives it, and the launcher."""

    POLL_SECONDS = 0.05  # between two looks at the command's output

    def __init__(self, spec, control):
        super().__init__(spec, control)
        self.tails, self.errors, self.folder, self.heard = [], Output(2), None, False
        # sshd may send it when the connection breaks; a launcher that wants the end says so.
        ignored = [signal.SIGHUP]
        if spec.get("ignore_signals"):
            ignored += [signal.SIGTERM, signal.SIGINT]
        for number in ignored:
            signal.signal(number, lambda *_: None)

    @staticmethod
    def in_child():
        pass

    def start(self):
        self.boot = boot_id()
        try:
            self.folder = tempfile.mkdtemp(prefix=f"hipress-{os.getpid()}-")  # private
        except OSError as error:
            # The disk may be full. The name is kept: there may be space when the folder is needed.
            sys.stderr.write("hipress-launch: cannot make a temporary folder: "
                             f"{error.strerror or error}; the job continues without it\n")
            self.folder = f"/tmp/hipress-{os.getpid()}-{os.urandom(8).hex()}"
        self.spec["env"]["HIPRESS_ELASTIC_ENDED"] = os.path.join(self.folder, "ended")
        try:
            super().start()
        except SystemExit:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def outputs(self):
        self.tails = [Tail(Output(1)), Tail(self.errors)]
        return [tail.file for tail in self.tails]

    def started(self):
        command, own = Process(self.child.pid), Process(os.getpid())
        self.report(pid=command.pid, since=command.since, supervisor=[own.pid, own.since],
                    boot=self.boot, namespace=namespace(), machine=machine(), folder=self.folder)

    def orphaned(self):
        pass

    def obey(self, line):
        if line == b"DONE":
            self.heard = True
        elif line.startswith(b"ENDED "):
            self.leave("ended", line.partition(b" ")[2].decode())
        else:
            super().obey(line)

    def leave(self, name, text):
        """Write a text to a file of the folder. Readers never see a partial file."""
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)  # a cleanup job may have removed it
            folder = open_private(self.folder)
        except OSError:
            return  # a status is also reported elsewhere; without evidence the worker's agent waits
        part = name + ".part"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "w") as file:
                file.write(text)
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            pass
        finally:
            os.close(folder)

    def report(self, **what):
        end = b"" if self.errors.last == b"\n" else b"\n"
        data = end + f"{self.spec['elastic']} {json.dumps(what)}\n".encode()
        while data:
            data = data[self.errors.write(data):]
            if data:
                if self.control is None:
                    return
                Supervisor.serve(self, self.POLL_SECONDS)

    def serve(self, timeout):
        wait = self.POLL_SECONDS if timeout is None else min(timeout, self.POLL_SECONDS)
        super().serve(wait)
        for tail in self.tails:
            tail.copy()

    def command_ended(self):
        self.leave("status", str(code_of(self.status)))

    def run(self):
        status = super().run()
        self.end_with(exit=code_of(status), left=len(descendants()))

    def end_with(self, **report):
        """Reports the command's end, after all that it has written, to a launcher that hears it."""
        for tail in self.tails:
            before = -1
            while tail.copy() and (tail.read > before or self.control is not None):
                Supervisor.serve(self, 0.0 if tail.read > before else self.POLL_SECONDS)
                before = tail.read
        self.report(**report)
        end = time.monotonic() + DONE_SECONDS
        while not self.heard and self.control is not None and time.monotonic() < end:
            Supervisor.serve(self, self.POLL_SECONDS)
        if self.heard:
            shutil.rmtree(self.folder, ignore_errors=True)


class Watcher(ElasticSupervisor):
    """Watches a command that another supervisor has started."""

    def run(self):
        about = self.spec["watch"]
        self.folder = about["folder"]
        if not self.is_here():
            return self.report(elsewhere=True)
        self.child = Process(about["pid"], about["since"] or 0)
        if about["boot"] != boot_id() and self.left_status() is None:
            return self.end_with(gone=True, restarted=True, left=0)
        keeper = Process(*about["supervisor"])
        if self.child.runs:
            try:
                outputs = enumerate((Output(1), self.errors), 1)
                self.tails = [Reader(self.child.pid, number, output, keeper)
                              for number, output in outputs]
            except OSError:
                self.tails = []
            self.report(watched=self.child.pid)
        while self.child.runs and self.control is not None:
            self.serve(self.POLL_SECONDS)
        end = time.monotonic() + STATUS_SECONDS
        status = self.left_status()
        while status is None and keeper.runs and time.monotonic() < end:
            self.serve(self.POLL_SECONDS)
            status = self.left_status()
        if self.control is None:
            return None
        if status is not None:
            return self.end_with(exit=status, left=len(self.marked()))
        return self.end_with(gone=True, restarted=False, left=self.end_leftovers())

    def is_here(self):
        """Return whether the command's processes would be visible here if they ran."""
        about, boot = self.spec["watch"], boot_id()
        if not about["namespace"] or about["namespace"] != namespace():
            return False
        # Without a machine's id, another machine looks like this one after a restart.
        same = about["machine"] == machine()
        return same and (about["boot"] == boot or bool(about["machine"]))

    def left_status(self):
        """The status that the supervisor has left; None: none."""
        try:
            folder = open_private(self.folder)
        except OSError:
            return None
        try:
            with os.fdopen(os.open("status", os.O_RDONLY, dir_fd=folder)) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None
        finally:
            os.close(folder)

    def end_leftovers(self):
        """End processes that descend from the command; return how many could not be ended."""
        end = time.monotonic() + LEFTOVER_SECONDS
        left = self.marked()
        while left and time.monotonic() < end:
            kill_all(left, signal.SIGKILL)
            self.serve(0.02)
            left = self.marked()
        return len(left)

    def marked(self):
        """Return the processes that descend from the command."""
        marks, left = {mark.encode() for mark in self.spec["marks"]}, []
        for entry in os.listdir("/proc"):
            # If the first thread has ended, only the other threads show the environment.
            threads = glob.iglob(f"/proc/{entry}/task/*/environ") if entry.isdigit() else ()
            for path in threads:
                try:
                    with open(path, "rb") as file:
                        found = set(file.read().split(b"\0"))
                except OSError:
                    continue
                if marks <= found:
                    left.append(int(entry))
                if found != {b""}:
                    break
        return left

    def stop(self):
        self.child.kill(signal.SIGTERM, signal.SIGCONT)

    def kill(self):
        self.child.kill(signal.SIGKILL)


def main(spec):
    """What supervisor.py calls."""
    (Watcher if spec.get("watch") else ElasticSupervisor)(spec, 0).run()
