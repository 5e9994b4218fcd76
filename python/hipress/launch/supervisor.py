"""Supervisor of one command of a job on its host. It reports the command's end to the launcher.

The launcher starts a supervisor for each process of a job: on its own machine, or on another host
through ssh, mpirun or srun. It sends this text, so other hosts need only Python 3.6 or newer.

Standard input is the control channel. It has this text, then a JSON object that describes the
command (each after its length in eight digits), then lines:

    TERM or KILL   end the command
    ENDED {...}    which processes of other slots have ended; left in a file for the command
    DONE           the launcher has received the report of the command's end

Reports are lines on standard error: a random word that the launcher has chosen, and a JSON object.
The supervisor itself exits with 0, because mpirun and srun write much about any other status.

The command runs in its own session. When it has ended, the supervisor ends each process that
descends from it, daemons included.

Usually the command does not outlive the launcher: the end of standard input ends it, and so does
the supervisor's death. With "persistent" (elastic jobs) the command outlives both:

* It writes to files in memory, which the supervisor reads: a pipe without a reader would end it.
* A report says which process it is. Its status is also left in a private folder.
* If the connection breaks, the launcher starts a watcher on that host with this report as "watch".
  The watcher follows the command to its end. If the command's supervisor was also killed, its
  status is unknown. The watcher then ends the processes that it left, which "marks" in their
  environment identify. The watcher may also have reached another host or container of the same
  name, where nothing shows whether the command runs.

An srun that starts several processes sends the same table ("ranks") to all their supervisors. There
the death of srun takes the place of the channel's end.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time

from hipress.base.process_table import boot_id, descendants, machine, namespace, start_time

# Supervisors start fast: modules that only persistent commands need are imported where needed.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLEANUP_SECONDS = 1.0  # from SIGTERM to SIGKILL for processes that the command left
STOP_SECONDS = 5.0  # the same for the command itself, where no launcher sends KILL
DONE_SECONDS = 5.0  # from the report of the command's end until the launcher confirms it
LEFTOVER_SECONDS = 5.0  # in which killed processes end
STATUS_SECONDS = 10.0  # from the command's end until a living supervisor has left its status
POLL_SECONDS = 0.05  # between two reads of a persistent command's output


def prctl(option, value):
    """Change an attribute of this process in Linux's kernel."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_supervisor():
    """Make the kernel kill this process when its parent dies."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_all(pids, number):
    """Send a signal to processes, some of which may have ended."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def kill_group(pid, *numbers):
    """Send signals to a process group, which may have ended."""
    for number in numbers:
        try:
            os.killpg(pid, number)
        except OSError:
            pass


def code_of(status):
    """Convert a status of waitpid() to Popen's returncode."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def open_private(path):
    """Open a directory to which only this user has access; raise OSError for any other.

    Its name may be visible to others, who may make a directory of that name when a cleanup job has
    removed this user's.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(f"other users have access to {path}")
    return folder


class ProcessHandle:
    """A process, identified by its id and start time.

    since: start time in ticks since boot; None if it has ended.
    """

    def __init__(self, pid, since=None):
        self.pid = pid
        self.since = start_time(pid) or None if since is None else since

    @property
    def runs(self):
        """Whether the process runs."""
        return bool(self.since) and start_time(self.pid) == self.since

    def kill(self, *numbers):
        """Send signals to its process group."""
        if self.runs:
            kill_group(self.pid, *numbers)


class Relay:
    """Copies one stream of the command line by line, each with a prefix and in one write."""

    def __init__(self, source, target, prefix):
        self.source, self.target, self.prefix, self.rest = source, target, prefix, b""
        self.next_state = 0.0

    def copy(self):
        """Copy what is available; return False at the end of the stream."""
        data = os.read(self.source, 65536)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        if not data and self.rest:
            lines.append(self.rest)
        elif b"\r" in self.rest[:-1]:
            # A progress bar rewrites its line: copy a state once a second, and the last one.
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


class Output:
    """A stream of this process that never blocks."""

    def __init__(self, target):
        self.target = target

    def write(self, data):
        """Return how many bytes were written; all of them if the stream has no reader."""
        sent = 0
        if self.target is None:
            return len(data)
        try:
            while sent < len(data) and select.select([], [self.target], [], 0)[1]:
                sent += os.write(self.target, data[sent : sent + select.PIPE_BUF])
        except OSError:
            self.target, sent = None, len(data)
        return sent


def memory_file():
    """Return a file in memory; before Python 3.8, a temporary file on disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("hipress-output"), "r+b", 0)
    import tempfile

    return tempfile.TemporaryFile(buffering=0)


class Tail:
    """A file that the command writes to. What is copied is removed from it."""

    BLOCK = 1 << 20  # bytes that are given back to the file system at a time
    KEPT = 256 << 20  # most bytes that wait for a slow reader; older bytes are dropped

    def __init__(self, output):
        self.file, self.lost = memory_file(), 0
        # Several processes of the command may write: each at the end.
        flags = fcntl.fcntl(self.file, fcntl.F_GETFL)
        fcntl.fcntl(self.file, fcntl.F_SETFL, flags | os.O_APPEND)
        self.output, self.read, self.freed, self.behind = output, 0, 0, False

    def copy(self, chunks=16):
        """Copy at most so many chunks; return False if nothing was left."""
        self.limit()
        self.behind = True
        for _ in range(chunks):
            data = os.pread(self.file.fileno(), 65536, self.read)
            if not data:
                self.behind = False
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
        """Write data to the output, and return how many bytes were written."""
        return self.output.write(data)

    def free(self):
        """Punch a hole (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) where all is copied.

        A file system that does not support it keeps the bytes until the command ends.
        """
        size = (self.read - self.freed) // self.BLOCK * self.BLOCK
        if size:
            call = getattr(ctypes.CDLL(None), "fallocate64", None)
            if call is not None:
                call(self.file.fileno(), 3, ctypes.c_longlong(self.freed), ctypes.c_longlong(size))
            self.freed += size


class Reader(Tail):
    """Output that a command writes to such a file from now on.

    Its supervisor, the keeper, also reads the file and frees it while it lives.
    """

    def __init__(self, pid, target, output, keeper):
        self.file, self.lost = open(f"/proc/{pid}/fd/{target}", "r+b", buffering=0), 0
        found = os.fstat(self.file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink:
            raise OSError("the command has put another file in its place")
        self.output, self.keeper, self.behind = output, keeper, False
        self.read = self.freed = found.st_size

    def write(self, data):
        """Write, except zeros: the supervisor has freed these bytes meanwhile."""
        zeros = len(data) - len(data.lstrip(b"\0"))
        return zeros or self.output.write(data.partition(b"\0")[0])

    def free(self):
        """Free the file's memory in place of a keeper that has died."""
        if not self.keeper.runs:
            super().free()


class Supervisor:
    """Runs a command that is described by ``spec``.

    control: file descriptor of the control channel; None if there is none.
    """

    def __init__(self, spec, control):
        self.spec, self.control = spec, control
        self.persistent = bool(spec.get("persistent"))
        self.child, self.status = None, None
        self.kill_at = None
        self.pending = b""
        self.relays, self.tails = [], []
        self.errors, self.folder, self.confirmed = Output(2), None, False
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        quiet = {"warn_on_full_buffer": False} if sys.version_info >= (3, 7) else {}
        signal.set_wakeup_fd(wake_write, **quiet)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        ignored = []
        if self.persistent:
            ignored.append(signal.SIGHUP)  # sshd may send it when the connection breaks
        if spec.get("ignore_signals"):  # an mpirun without its launcher sends SIGTERM
            ignored += [signal.SIGTERM, signal.SIGINT]
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            stops = number not in ignored
            signal.signal(number, lambda *_, stops=stops: self.stop() if stops else None)

    def run(self):
        """Run the command to its end and return its status, as Popen's returncode."""
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
        code = code_of(self.status)
        if self.persistent:
            self.leave("status", str(code))
        left = self.end_all(descendants, CLEANUP_SECONDS, CLEANUP_SECONDS + LEFTOVER_SECONDS)
        while self.relays:
            self.serve(1.0)
        name = {"rank": self.spec["rank"]} if "rank" in self.spec else {}
        self.report_end(exit=code, left=left, **name)
        return code

    def start(self):
        """Start the command, and report which process it is."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        env = dict(os.environ, **self.spec["env"])
        stdout = stderr = None  # the command has this process's
        if self.persistent:
            self.make_folder()
            env["HIPRESS_ELASTIC_ENDED"] = os.path.join(self.folder, "ended")
            self.tails = [Tail(Output(1)), Tail(self.errors)]
            stdout, stderr = [tail.file for tail in self.tails]
        elif "rank" in self.spec:
            stdout = stderr = subprocess.PIPE
        text = self.spec.get("input")
        try:
            self.child = subprocess.Popen(
                self.spec["argv"],
                env=env,
                cwd=self.spec.get("cwd"),
                stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=None if self.persistent else die_with_supervisor,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.remove_folder()
            self.fail_to_start(error)
        if text is not None:
            threading.Thread(target=self.give_input, args=(text.encode(),), daemon=True).start()
        if stdout is subprocess.PIPE:
            prefix = f"[{self.spec['rank']}] ".encode()
            pipes = enumerate((self.child.stdout, self.child.stderr), 1)
            self.relays = [Relay(pipe.fileno(), target, prefix) for target, pipe in pipes]
        if self.persistent:
            command, own = ProcessHandle(self.child.pid), ProcessHandle(os.getpid())
            self.report(
                pid=command.pid,
                since=command.since,
                supervisor=[own.pid, own.since],
                boot=boot_id(),
                namespace=namespace(),
                machine=machine(),
                folder=self.folder,
            )

    def make_folder(self):
        """Make a private folder for the command's status."""
        import tempfile

        try:
            self.folder = tempfile.mkdtemp(prefix=f"hipress-{os.getpid()}-")  # private
        except OSError as error:
            # The disk may be full. The name is kept: there may be space when the folder is needed.
            sys.stderr.write(
                "hipress-launch: cannot make a temporary folder: "
                f"{error.strerror or error}; the job continues without it\n"
            )
            self.folder = f"/tmp/hipress-{os.getpid()}-{os.urandom(8).hex()}"

    def remove_folder(self):
        """Remove the private folder."""
        import shutil

        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def fail_to_start(self, error):
        """Exit as a shell does for a command that cannot be started."""
        # The directory is checked in the child, where its error looks like the command's.
        what, directory = self.spec["argv"][0], self.spec.get("cwd")
        if directory and not os.path.isdir(directory):
            what = directory
        reason = getattr(error, "strerror", None) or error
        if "/" not in what and os.path.isfile(os.path.join(directory or "", what)):
            reason = f"it is not on PATH; for the file here write ./{what} or python {what}"
        sys.stderr.write(f"hipress-launch: cannot run '{what}': {reason}\n")
        sys.exit(126 if isinstance(error, PermissionError) else 127)

    def give_input(self, data):
        """Write the command's standard input."""
        try:
            with self.child.stdin as stdin:
                stdin.write(data)
        except OSError:
            pass  # the process has died; its status shows that

    def stop(self):
        """Send SIGTERM to the command, and SIGCONT, without which a stopped one cannot end."""
        if self.child is not None and self.status is None:
            kill_group(self.child.pid, signal.SIGTERM, signal.SIGCONT)
        if self.control is None and self.kill_at is None:
            self.kill_at = time.monotonic() + STOP_SECONDS

    def kill(self):
        """Send SIGKILL to the command and all its descendants."""
        kill_all(descendants(), signal.SIGKILL)

    def read_control(self):
        """Read commands of the launcher."""
        data = os.read(self.control, 4096)
        lines = (self.pending + data).split(b"\n")
        self.pending = lines.pop()
        for line in lines:
            name, _, text = line.partition(b" ")
            if name == b"TERM":
                self.stop()
            elif name == b"KILL":
                self.kill()
            elif name == b"DONE":
                self.confirmed = True
            elif name == b"ENDED":
                self.leave("ended", text.decode())
        if not data:  # the launcher has ended
            self.control = None
            if not self.persistent:
                self.kill()

    def reap(self):
        """Wait for ended children: the command, and orphans that this process has inherited."""
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
        """Handle events for ``timeout`` seconds (None: until there is one), and copy output."""
        if self.persistent:
            timeout = POLL_SECONDS if timeout is None else min(timeout, POLL_SECONDS)
        self.handle_events(timeout, [tail for tail in self.tails if tail.behind])
        for tail in self.tails:
            tail.copy()

    def handle_events(self, timeout, behind=()):
        """Handle events for ``timeout`` seconds, or until a tail that is behind can be copied."""
        targets = [tail.output.target for tail in behind if tail.output.target is not None]
        sources = [self.wake] + [relay.source for relay in self.relays]
        if self.control is not None:
            sources.append(self.control)
        ready = select.select(sources, targets, [], timeout)[0]
        if self.wake in ready:
            try:
                os.read(self.wake, 4096)
            except OSError:
                pass
        if self.control is not None and self.control in ready:
            self.read_control()
        self.relays = [relay for relay in self.relays if relay.source not in ready or relay.copy()]
        self.reap()

    def end_all(self, find, kill_after, give_up_after):
        """End the processes that ``find`` returns; return how many could not be ended."""
        began, left = time.monotonic(), find()
        while left and time.monotonic() < began + give_up_after:
            kills = time.monotonic() >= began + kill_after
            kill_all(left, signal.SIGKILL if kills else signal.SIGTERM)
            self.serve(0.02)
            left = find()
        return len(left)

    def report(self, **what):
        """Send a report to the launcher, after earlier output."""
        data = f"{self.spec['word']} {json.dumps(what)}\n".encode()
        while data:
            data = data[self.errors.write(data) :]
            if data:
                if self.persistent and self.control is None:
                    return
                self.handle_events(POLL_SECONDS)

    def report_end(self, **report):
        """Report the command's end after its output, and wait until the launcher confirms it."""
        for tail in self.tails:
            before = -1
            while tail.copy() and (tail.read > before or self.control is not None):
                self.handle_events(0.0 if tail.read > before else POLL_SECONDS, [tail])
                before = tail.read
        self.report(**report)
        end = time.monotonic() + DONE_SECONDS
        while self.persistent and not self.confirmed and self.control is not None:
            if time.monotonic() >= end:
                break
            self.handle_events(POLL_SECONDS)
        if self.confirmed:
            self.remove_folder()

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


class Watcher(Supervisor):
    """Watches a command that another supervisor has started."""

    def run(self):
        """Watch the command to its end, and report that."""
        watched = self.spec["watch"]
        self.folder = watched["folder"]
        boot = boot_id()
        if not self.is_here(boot):
            return self.report(elsewhere=True)
        self.child = ProcessHandle(watched["pid"], watched["since"] or 0)
        if watched["boot"] != boot and self.left_status() is None:
            return self.report_end(gone=True, restarted=True, left=0)
        keeper = ProcessHandle(*watched["supervisor"])
        if self.child.runs:
            try:
                outputs = enumerate((Output(1), self.errors), 1)
                self.tails = [Reader(self.child.pid, *one, keeper) for one in outputs]
            except OSError:
                self.tails = []
            self.report(watched=self.child.pid)
        while self.child.runs and self.control is not None:
            self.serve(POLL_SECONDS)
        end = time.monotonic() + STATUS_SECONDS
        status = self.left_status()
        while status is None and keeper.runs and time.monotonic() < end:
            self.serve(POLL_SECONDS)
            status = self.left_status()
        if self.control is None:
            return None
        if status is not None:
            return self.report_end(exit=status, left=len(self.marked()))
        return self.report_end(
            gone=True, restarted=False, left=self.end_all(self.marked, 0.0, LEFTOVER_SECONDS)
        )

    def is_here(self, boot):
        """Return whether the command's processes would be visible here if they ran.

        An unknown boot id proves neither that this is the host nor that it has restarted.
        """
        watched = self.spec["watch"]
        if not boot or not watched["boot"]:
            return False
        if not watched["namespace"] or watched["namespace"] != namespace():
            return False
        # Without a machine's id, another machine looks like this one after a restart.
        same = watched["machine"] == machine()
        return same and (watched["boot"] == boot or bool(watched["machine"]))

    def left_status(self):
        """Return the status that the supervisor has left, or None."""
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

    def marked(self):
        """Return the processes that descend from the command."""
        import glob

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
        """Send SIGTERM to the command, and SIGCONT, without which a stopped one cannot end."""
        self.child.kill(signal.SIGTERM, signal.SIGCONT)

    def kill(self):
        """Send SIGKILL to the command."""
        self.child.kill(signal.SIGKILL)


def read_exactly(size):
    """Read so many bytes of standard input, and none beyond them."""
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit(0)  # the launcher died before it sent the description
        data += part
    return data


def run_rank(table):
    """Run a process of srun's, whose number is its place in the table."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    role, index = table["ranks"][int(os.environ["SLURM_PROCID"])]
    env = dict(table["env"], **table["roles"][role]["env"])
    env[f"DMLC_{role.upper()}_ID"] = str(index)
    spec = {
        "rank": f"{role} {index}",
        "argv": table["roles"][role]["argv"],
        "env": env,
        "cwd": table["cwd"],
        "word": table["word"],
    }
    code = Supervisor(spec, None).run()
    os._exit(code if code >= 0 else 128 - code)  # srun ends the job if this is not 0


def main():
    """Run what the launcher describes on standard input."""
    spec = json.loads(read_exactly(int(read_exactly(8))).decode())
    if "ranks" in spec:
        run_rank(spec)
    (Watcher if spec.get("watch") else Supervisor)(spec, 0).run()
    os._exit(0)


if __name__ == "__main__":
    main()
