"""Runs a command that outlives this process and the launcher, or watches one that has.

Stands alone beside supervisor.py, as whose "program" it runs.

The end of standard input ends nothing. What the command writes goes to files of its own, which are
read from here: a file can be written to when nobody reads it any more, a pipe cannot. The command's
process id and its status are reported on standard error, in lines that begin with the word that
"elastic" gives: the end of this supervisor alone would not tell whether the command has ended. Its
own status is 0, whatever the command's: mpirun and srun have much to say about any other. With
"ignore_signals" it passes no signal on: an mpirun without its launcher sends SIGTERM.

With "watch", a process id and a variable of its environment, the command runs already, and the
connection to its supervisor has broken, or somebody has killed that. It is watched to its end. Its
status is what its supervisor leaves, if that lives. Else nobody knows it: it is gone, and with that
the seconds are reported since this machine was started.
"""

import ctypes
import fcntl
import os
import signal
import tempfile
import time

from supervisor import Supervisor, code_of

STATUS_SECONDS = 1.0  # from a command's end until its supervisor has left its status


def status_file(word, pid):
    """Where a supervisor leaves the command's status if somebody else watches it, too."""
    return os.path.join(tempfile.gettempdir(), f"{word}-{pid}")


def started(pid):
    """When a process was started, in ticks since this machine was; None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in b"ZX" else int(fields[19])


class Tail:
    """A file that the command writes to; what comes is copied, and takes no space any more."""

    BLOCK = 1 << 20  # bytes that are given back to the file system at a time

    def __init__(self, target):
        self.file = tempfile.TemporaryFile(buffering=0)
        # Several processes of the command may write: each at the end.
        flags = fcntl.fcntl(self.file, fcntl.F_GETFL)
        fcntl.fcntl(self.file, fcntl.F_SETFL, flags | os.O_APPEND)
        self.target, self.read, self.freed, self.last = target, 0, 0, b"\n"

    def copy(self, chunks=16):
        """Copies at most so many chunks; returns False if nothing was left."""
        for _ in range(chunks):
            data = os.pread(self.file.fileno(), 65536, self.read)
            if not data:
                return False
            self.read += len(data)
            self.write(data)
        self.free()
        return True

    def write(self, data):
        self.last = data[-1:]
        try:
            while data and self.target is not None:
                data = data[os.write(self.target, data):]
        except OSError:
            self.target = None  # the launcher is gone

    def free(self):
        """Punches a hole (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) where all is copied. A
        file system that cannot keeps the bytes until the command ends."""
        size = (self.read - self.freed) // self.BLOCK * self.BLOCK
        if size:
            call = getattr(ctypes.CDLL(None), "fallocate64", None)
            if call is not None:
                call(self.file.fileno(), 3, ctypes.c_longlong(self.freed), ctypes.c_longlong(size))
            self.freed += size


class ElasticSupervisor(Supervisor):
    """Its command outlives it, and the launcher."""

    POLL_SECONDS = 0.05  # between two looks at the command's output

    def __init__(self, spec, control):
        super().__init__(spec, control)
        self.tails = []
        # sshd may send it when the connection breaks; a launcher that wants the end says so.
        ignored = [signal.SIGHUP]
        if spec.get("ignore_signals"):
            ignored += [signal.SIGTERM, signal.SIGINT]
        for number in ignored:
            signal.signal(number, lambda *_: None)

    @staticmethod
    def in_child():
        pass

    def outputs(self):
        self.tails = [Tail(1), Tail(2)]
        return [tail.file for tail in self.tails]

    def started(self):
        self.report("pid", self.child.pid)

    def orphaned(self):
        pass

    def report(self, what, number):
        line = f"{self.spec['elastic']} {what} {number}\n".encode()
        if self.tails:
            self.tails[1].write((b"" if self.tails[1].last == b"\n" else b"\n") + line)
        else:
            os.write(2, line)

    def serve(self, timeout):
        wait = self.POLL_SECONDS if timeout is None else min(timeout, self.POLL_SECONDS)
        super().serve(wait)
        for tail in self.tails:
            tail.copy()

    def run(self):
        status = super().run()
        self.copy_rest()
        self.report("exit", code_of(status))
        try:  # a watcher has made it, if there is one
            flags = os.O_WRONLY | os.O_NOFOLLOW
            file = os.open(status_file(self.spec["elastic"], self.child.pid), flags)
        except OSError:
            return
        os.write(file, str(code_of(status)).encode())
        os.close(file)

    def copy_rest(self):
        for tail in self.tails:
            while tail.copy():
                pass


class Reader(Tail):
    """What a command writes from now on to a file that its supervisor reads, too."""

    def __init__(self, pid, target):
        self.file = open(f"/proc/{pid}/fd/{target}", "rb", buffering=0)
        self.target, self.last = target, b"\n"
        self.read = os.fstat(self.file.fileno()).st_size

    def write(self, data):
        super().write(data.replace(b"\0", b""))  # what the supervisor has given back

    def free(self):
        pass


class Watched:
    """A process that is not this one's child."""

    def __init__(self, pid, mark):
        self.pid, self.since = pid, None
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    self.since = started(pid)
        except OSError:
            pass

    @property
    def runs(self):
        return self.since is not None and started(self.pid) == self.since


class Watcher(ElasticSupervisor):
    """Watches a command that another supervisor has started."""

    def run(self):
        self.child = Watched(*self.spec["watch"])
        path = status_file(self.spec["elastic"], self.child.pid)
        try:
            if self.child.runs:
                self.begin(path)
            while self.child.runs and self.control is not None:
                self.serve(self.POLL_SECONDS)
            if self.control is not None:
                self.copy_rest()
                self.report_end(self.left_status(path))
        finally:
            try:
                os.unlink(path)
            except OSError:
                pass

    def begin(self, path):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
            self.tails = [Reader(self.child.pid, target) for target in (1, 2)]
        except OSError:
            self.tails = []  # it runs all the same
        self.report("pid", self.child.pid)

    def report_end(self, status):
        if status is not None:
            self.report("exit", status)
            return
        with open("/proc/uptime") as file:
            self.report("gone", int(float(file.read().split()[0])))

    def left_status(self, path):
        """The status that the supervisor has left; None: none."""
        end = time.monotonic() + STATUS_SECONDS
        while time.monotonic() < end:
            try:
                with open(path) as file:
                    return int(file.read())
            except ValueError:  # not yet
                time.sleep(0.02)
            except OSError:
                break
        return None

    def kill(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except OSError:
            pass


def main(spec):
    """What supervisor.py calls."""
    (Watcher if spec.get("watch") else ElasticSupervisor)(spec, 0).run()
