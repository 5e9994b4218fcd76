"""Runs of tools/launch.py on this machine: statuses, failures, what remains afterwards, output."""

from __future__ import annotations

import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import ROOT
from harness.launch import LAUNCH, STUBBORN, launched, python, run
from harness.processes import wait_until
from hipress.launch.bootstrap import BOOTSTRAP
from scripts import SCRIPTS


def only(role: str, index: int, then: str, otherwise: str = "time.sleep(60)") -> list[str]:
    """Return a command in which one process behaves differently."""
    name = "DMLC_ROLE" if role == "scheduler" else f"DMLC_{role.upper()}_ID"
    value = role if role == "scheduler" else str(index)
    return [*python(SCRIPTS / "launch" / "only.py"), name, value, then, otherwise]


# Exit statuses and failures


def test_success_is_zero_and_silent():
    launch = run(["-n", "2", "-s", "1", *python("print('done')")])
    assert launch.process.returncode == 0
    assert sorted(launch.out.splitlines()) == [
        "[scheduler] done",
        "[server 0] done",
        "[worker 0] done",
        "[worker 1] done",
    ]
    assert launch.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "index", "then", "status", "sentence"),
    [
        ("worker", 1, "sys.exit(3)", 3, "worker 1 exited with status 3"),
        (
            "worker",
            0,
            "os.kill(os.getpid(), signal.SIGKILL)",
            137,
            "worker 0 was killed by SIGKILL (signal 9)",
        ),
        (
            "server",
            1,
            "os.kill(os.getpid(), signal.SIGSEGV)",
            139,
            "server 1 was killed by SIGSEGV (signal 11)",
        ),
        ("scheduler", 0, "sys.exit(7)", 7, "scheduler exited with status 7"),
        ("server", 1, "sys.exit(1)", 1, "server 1 exited with status 1"),
    ],
)
def test_a_death_stops_the_job_and_is_named(role, index, then, status, sentence):
    begin = time.monotonic()
    launch = run(["-n", "2", *only(role, index, then)])
    assert launch.process.returncode == status
    assert len(launch.err.splitlines()) == 1
    assert launch.err.startswith(f"hipress-launch: {sentence} after ")
    assert launch.err.endswith("; stopping the other 4 processes\n")
    assert time.monotonic() - begin < 15.0


@pytest.mark.parametrize("most", [40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]])
def test_many_processes_need_many_files(most):
    """Many processes need many files: the soft limit is raised to what is needed, if the hard one
    allows."""
    line = ["-n", "15", "-s", "0", "sh", "-c", "ulimit -n"]
    command = ["sh", "-c", f'ulimit -Sn 40; ulimit -Hn {most}; exec "$@"', "sh", sys.executable]
    done = subprocess.run([*command, str(LAUNCH), *line], capture_output=True, text=True)
    if most == 40:
        assert done.returncode == 1
        assert re.fullmatch(
            r"hipress-launch: cannot start worker \d+: Too many open files\n", done.stderr
        )
    else:
        assert done.returncode == 0, done.stderr
        assert "[worker 14] 164\n" in done.stdout


def test_the_killed_process_is_named_not_those_that_fail_because_of_it(tmp_path):
    # Survivors notice within milliseconds and exit with their own errors.
    script = SCRIPTS / "launch" / "killed_server.py"
    launch = run(["-n", "3", "-s", "1", *python(script), str(tmp_path / "pid")])
    assert launch.process.returncode == 137
    assert "hipress-launch: server 0 was killed by SIGKILL" in launch.err
    assert launch.err.count("lost server 0") == 4  # survivors had the time to report it


@pytest.mark.slow
def test_a_killed_child_of_a_shell_is_seen_through_its_status():
    launch = run(
        ["-n", "1", "sh", "-c", '[ $DMLC_ROLE = worker ] || exec sleep 60; sh -c "kill -9 \\$\\$"']
    )
    assert launch.process.returncode == 137
    assert "worker 0 exited with status 137 (128 + 9: SIGKILL)" in launch.err


def test_unknown_command_and_directory_without_permission():
    launch = run(["-n", "1", "no-such-command-anywhere"])
    assert launch.process.returncode == 127
    assert "cannot run 'no-such-command-anywhere': No such file or directory" in launch.err


def test_a_script_without_its_python_is_told_how(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    launch = run(["-n", "1", "train.py"])
    assert launch.process.returncode == 127
    assert "cannot run 'train.py': it is not on PATH; for the file here write" in launch.err


def test_servers_that_end_because_a_worker_ends_are_not_the_cause(tmp_path):
    """Servers that end because a worker ends are not the cause. A worker's connections close before
    its process has ended: here more than half a second."""
    script = SCRIPTS / "launch" / "servers_first.py"
    launch = run(["-n", "1", "-s", "1", *python(script), str(tmp_path / "closed")])
    assert launch.process.returncode == 3
    assert launch.err.startswith("hipress-launch: worker 0 exited with status 3 after ")


def draining(seconds, command):
    """Start a launcher of one worker that waits so long for servers and the scheduler."""
    script = SCRIPTS / "launch" / "draining.py"
    return subprocess.Popen(
        [sys.executable, str(script), str(ROOT / "python"), str(seconds), "-n", "1", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_servers_that_outlive_the_workers_are_stopped():
    with draining(0.5, only("worker", 0, "print('trained')")) as launcher:
        _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert re.search(r"server 0 still ran \S+ s after the last worker; stopping", err)


def test_a_scheduler_that_computes_after_the_workers_is_waited_for(tmp_path):
    """The launcher waits for a scheduler that computes after the workers. It computes until the
    launcher has reported that, however busy the machine is."""
    end = tmp_path / "end"
    script = SCRIPTS / "launch" / "long_scheduler.py"
    with draining(2.5, ["-s", "0", *python(script), str(end)]) as launcher:
        first = launcher.stderr.readline()
        end.touch()
        out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert "[scheduler] written" in out
    assert first == (
        "hipress-launch: the last worker has ended, scheduler still computes; waiting for it\n"
    )
    assert err == ""


def test_timeout():
    launch = run(["-n", "1", "--timeout", "0.6", *python("import time; time.sleep(60)")])
    assert launch.process.returncode == 124
    assert launch.err == "hipress-launch: the job has not ended within 0.6 s; stopping it\n"


# Nothing stays behind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing(number):
    with launched(["-n", "2", "-s", "1", "--grace", "0.5", *python(STUBBORN)]) as launch:
        launch.read_lines(4, "ready")
        # Supervisor, command and two daemons each.
        wait_until(lambda: len(launch.processes()) == 4 * 4, 5.0, "all daemons")
        launch.process.send_signal(number)
        assert launch.finish(20.0) == 128 + number
        launch.gone(3.0)
    assert f"hipress-launch: {number.name}; stopping the job" in launch.err


def test_second_interrupt_does_not_wait():
    with launched(["-n", "1", "--grace", "60", *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(signal.SIGINT)
        # Two that it has not received yet would be one.
        assert b"stopping the job" in launch.process.stderr.readline()
        time.sleep(0.3)
        launch.process.send_signal(signal.SIGINT)
        assert launch.finish(10.0) == 130
        launch.gone(3.0)


def test_a_second_signal_is_not_lost_if_it_comes_at_once():
    with launched(["-n", "1", "--grace", "60", *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(signal.SIGINT)
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 130
        launch.gone(3.0)
    assert "SIGTERM again; killing everything at once" in launch.err


def test_processes_get_sigterm_and_time_to_clean_up():
    script = SCRIPTS / "launch" / "cleans_up.py"
    with launched(["-n", "1", *python(script)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(10.0) == 143
    assert launch.out.count("cleaned up") == 3


def test_killed_launcher_leaves_nothing():
    with launched(["-n", "2", "-s", "1", *python(STUBBORN)]) as launch:
        launch.read_lines(4, "ready")
        launch.process.kill()
        launch.gone(5.0)


def test_launcher_killed_while_starting_leaves_nothing():
    for delay in (0.05, 0.1, 0.15, 0.2):
        with launched(["-n", "4", *python(STUBBORN)]) as launch:
            time.sleep(delay)
            launch.process.kill()
            launch.gone(5.0)


@pytest.mark.slow
def test_killed_supervisor_ends_the_job():
    with launched(["-n", "1", "--grace", "0.5", *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        supervisors = [
            pid
            for pid in launch.processes()
            if BOOTSTRAP.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        assert len(supervisors) == 3
        os.kill(supervisors[0], signal.SIGKILL)
        assert launch.finish(20.0) == 137
        launch.gone(3.0)


def test_daemons_of_a_worker_that_ended_well_are_ended():
    launch = run(["-n", "1", "sh", "-c", "setsid sleep 300 & exit 0"])
    assert launch.process.returncode == 0


def test_reader_that_goes_away_ends_the_job():
    with launched(["-n", "1", *python("while True: print('x' * 1000)")]) as launch:
        launch.process.stdout.read(1000)
        launch.process.stdout.close()
        launch.process.stdout = None
        assert launch.finish(20.0) == 128 + signal.SIGPIPE
        launch.gone(3.0)


# Output


def test_lines_are_whole_and_prefixed():
    script = SCRIPTS / "launch" / "pieces.py"
    launch = run(["-n", "3", "-s", "1", *python(script)])
    seen = {}
    for line in launch.out.splitlines():
        match = re.fullmatch(r"\[(scheduler|server 0|worker [012])\] (.*)", line)
        assert match, line
        seen.setdefault(match[1], []).append(match[2])
    expected = [f"{i}:" + "abcdefgh" * (i % 40) for i in range(1500)] + ["the end"]
    assert len(seen) == 5
    assert all(lines == expected for lines in seen.values())


def test_streams_stay_apart_and_bytes_pass_unchanged():
    code = "import os; os.write(1, b'out \\xff\\n'); os.write(2, b'err \\x1b[1m\\n')"
    with launched(["-n", "1", "-s", "1", *python(code)]) as launch:
        out, err = launch.process.communicate(timeout=30)
    assert b"[worker 0] out \xff\n" in out and b"err" not in out
    assert b"[worker 0] err \x1b[1m\n" in err and b"out" not in err


def test_output_comes_at_once():
    with launched(["-n", "1", *only("worker", 0, "print('now'); time.sleep(30)")]) as launch:
        begin = time.monotonic()
        launch.read_lines(1, "[worker 0] now")
        assert time.monotonic() - begin < 10.0
        assert launch.process.poll() is None


@pytest.mark.parametrize(
    ("environ", "colored"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_on_a_terminal_only(environ, colored):
    pytest.importorskip("rich")
    leader, follower = pty.openpty()
    try:
        with launched(
            ["-n", "1", "-s", "1", *python("print('hello')")], env=environ, stdout=follower
        ) as launch:
            assert launch.finish() == 0
        os.close(follower)
        follower = -1
        output = b""
        try:
            while data := os.read(leader, 4096):
                output += data
        except OSError:  # a terminal's notification that no process writes
            pass
    finally:
        os.close(leader)
        if follower >= 0:
            os.close(follower)
    assert output.count(b"hello") == 3
    assert (b"\x1b[" in output) == colored
    assert re.search(rb"\[worker 0\](\x1b\[0m)? hello", output)
