"""Runs of the launcher, with checks that nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import ROOT, SCRIPTS
from harness.processes import wait_until

LAUNCH = ROOT / "tools" / "launch.py"
MARK = "HIPRESS_TEST_MARK"

STUBBORN = SCRIPTS / "stubborn.py"

#: Program that prints a process's environment and working directory, for reports().
REPORT = "import json, os; print(json.dumps(dict(os.environ, cwd=os.getcwd())))"


def python(program: str | Path) -> list[str]:
    """Return a command that runs code, or a script if it is a Path, and starts quickly."""
    own = [str(program)] if isinstance(program, Path) else ["-c", program]
    return [sys.executable, "-S", *own]


def marked(mark: str) -> list[int]:
    """Return the ids of other processes whose environment contains the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}\0".encode() in environ:
                found.append(int(entry.name))
    return found


class Launch:
    """Running launcher."""

    def __init__(self, arguments: list[str], env: dict[str, str] | None = None, **options) -> None:
        self.mark = uuid.uuid4().hex
        environ = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("DMLC_", "OMP_", "HIPRESS_"))
        }
        environ.update({MARK: self.mark, **(env or {})})
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen(
            [sys.executable, str(LAUNCH), *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )
        self.out = self.err = ""

    def finish(self, timeout: float = 60.0) -> int:
        """Wait for the launcher's end. The output is then in ``out`` and ``err``."""
        out, err = self.process.communicate(timeout=timeout)
        self.out, self.err = (out or b"").decode(), (err or b"").decode()
        return self.process.returncode

    def read_lines(self, count: int, text: str) -> None:
        """Wait for lines on stdout that contain a text."""
        while count:
            line = self.process.stdout.readline().decode()
            assert line, "the launcher ended early"
            count -= text in line

    def processes(self) -> list[int]:
        """Return the job's processes and the supervisors, without the launcher."""
        return [pid for pid in marked(self.mark) if pid != self.process.pid]

    def gone(self, seconds: float = 8.0) -> None:
        """Assert that no process of the job exists after at most so many seconds."""
        wait_until(lambda: not marked(self.mark), seconds, "the job's processes to be gone")


@contextmanager
def launched(arguments: list[str], **options) -> Iterator[Launch]:
    """Start a launcher, and clean up after it whatever the test does."""
    launch = Launch(arguments, **options)
    try:
        yield launch
    finally:
        if launch.process.poll() is None:
            launch.process.kill()
        launch.process.wait()
        for pipe in (launch.process.stdout, launch.process.stderr):
            if pipe is not None:
                pipe.close()
        for pid in marked(launch.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def run(arguments: list[str], seconds: float = 170.0, **options) -> Launch:
    """Run the launcher to its end and check that it left nothing.

    Args:
        seconds: Seconds until it must have ended. A whole test has 180.
    """
    with launched(arguments, **options) as launch:
        launch.finish(seconds)
        launch.gone(3.0)
    return launch


class Sshd:
    """Separate sshd on loopback, with its port, keys and configuration in a directory."""

    def __init__(self, directory: Path, address: str = "127.0.0.1") -> None:
        self.directory, self.address = directory, address
        self.path = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        self.port = 0
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Configure and start the sshd."""
        from hipress.launch.job import free_port

        for name in ("host_key", "id"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / name)],
                check=True,
            )
        self.port = free_port(self.address)
        host_key = " ".join((self.directory / "host_key.pub").read_text().split()[:2])
        (self.directory / "known_hosts").write_text(f"[{self.address}]:{self.port} {host_key}\n")
        (self.directory / "ssh_config").write_text(
            f"IdentityFile {self.directory}/id\nIdentitiesOnly yes\nIdentityAgent none\n"
            f"UserKnownHostsFile {self.directory}/known_hosts\nStrictHostKeyChecking yes\n"
        )
        (self.directory / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress {self.address}\nHostKey {self.directory}/host_key\n"
            f"AuthorizedKeysFile {self.directory}/id.pub\nStrictModes no\nUsePAM no\n"
            f"PasswordAuthentication no\nPidFile none\nMaxStartups 100\nPermitRootLogin yes\n"
            f"SetEnv TMPDIR={self.directory}\n"
        )
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.serve()

    def serve(self) -> None:
        """Start the sshd, perhaps again, and wait until it answers."""
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.path, "-D", "-e", "-f", str(self.directory / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, 10.0, "sshd to listen")

    def _answers(self) -> bool:
        import socket

        if self.process.poll() is not None:
            raise AssertionError(f"sshd: {(self.directory / 'log').read_text()}")
        try:
            with socket.create_connection((self.address, self.port), timeout=1.0):
                return True
        except OSError:
            return False

    def arguments(self, slots: int = 1) -> list[str]:
        """Return launcher options for a job on this host."""
        from hipress.base.addresses import join

        hostfile = self.directory / "hosts"
        hostfile.write_text(f"# one host\n{join(self.address, self.port)} slots={slots}\n")
        return ["-H", str(hostfile), "--ssh", f"ssh -F {self.directory}/ssh_config"]

    def stop(self) -> None:
        """End the sshd."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10.0)


def reports(launch: Launch) -> dict[str, dict[str, str]]:
    """Return the environment of each process, by its prefix, from a job that ran REPORT."""
    found = {}
    for line in launch.out.splitlines():
        match = re.fullmatch(r"\[([a-z]+(?: \d+)?)\] (\{.*\})", line)
        assert match, line
        found[match[1]] = json.loads(match[2])
    return found


def check_roles(seen: dict[str, dict[str, str]], workers: int, servers: int) -> None:
    """Check that every role is there once, with the variables to find all other processes."""
    names = [
        "scheduler",
        *(f"server {i}" for i in range(servers)),
        *(f"worker {i}" for i in range(workers)),
    ]
    assert sorted(seen) == sorted(names)
    for name, env in seen.items():
        role, _, index = name.partition(" ")
        assert env["DMLC_ROLE"] == role
        assert env.get("DMLC_WORKER_ID") == (index if role == "worker" else None)
        assert env.get("DMLC_SERVER_ID") == (index if role == "server" else None)
        assert (env["DMLC_NUM_WORKER"], env["DMLC_NUM_SERVER"]) == (str(workers), str(servers))
    for key in ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "HIPRESS_SECRET"):
        assert len({env[key] for env in seen.values()}) == 1
