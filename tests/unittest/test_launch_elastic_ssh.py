"""hipress launch --elastic over ssh: who is watched, and started again, whatever breaks."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from harness.launch import Sshd, launched, python
from harness.launch_elastic import WORKER, alive, arguments, supervisor_of, ups
from harness.processes import wait_until
from hipress.launcher.elastic_runner import ElasticRunner
from hipress.launcher.output import Printer
from hipress.launcher.runner import Task
from hipress.launcher.slots import Rules, Slot, State


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    if server.path is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("sshd, ssh or ssh-keygen is not installed (Debian: openssh-server)")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def own_line(launch):
    """The launcher's next line on stderr, where login shells may have lines, too."""
    while not (line := launch.process.stderr.readline().decode()).startswith("hipress-launch:"):
        assert line, "the launcher has ended"
    return line.removeprefix("hipress-launch: ").rstrip("\n")


def connection_of(launch, slot):
    """The ssh process that the launcher has started for a slot of its."""
    children = Path(f"/proc/{launch.process.pid}/task/{launch.process.pid}/children").read_text()
    ssh = [int(pid) for pid in children.split() if alive(int(pid))]
    return sorted(ssh)[slot]


def test_restarts_and_a_lost_supervisor(sshd, tmp_path):
    mark = f"HIPRESS_TEST_SSH={os.urandom(8).hex()}"
    command = arguments(3, *sshd.arguments(2), "--env", mark, *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 3)
        os.kill(found[2][2], signal.SIGKILL)
        (again,) = ups(launch, 1)
        assert again[:2] == (2, 1) and again[3] == found[2][3]
        assert own_line(launch) == (
            "worker 2 on 127.0.0.1 was killed by signal 9; restart 1 of 3"
        )
        os.kill(supervisor_of(found[0][2]), signal.SIGKILL)
        assert own_line(launch).startswith("the connection to worker 0 on 127.0.0.1 has ended")
        assert own_line(launch) == "connected to worker 0 on 127.0.0.1 again"
        assert alive(found[0][2])
        os.kill(found[0][2], signal.SIGKILL)
        assert own_line(launch) == "worker 0 on 127.0.0.1 ended unseen; restart 1 of 3"
        (third,) = ups(launch, 1)
        assert third[:2] == (0, 1)
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 143
        assert not any(alive(pid) for pid in (found[1][2], again[2], third[2]))


def test_a_broken_connection_is_made_again(sshd, tmp_path):
    """The worker goes on meanwhile. Its supervisor lives, so its status is known in the end."""
    command = arguments(2, *sshd.arguments(2), "--env", "STATUS=3", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 2)
        sshd.stop()
        for connection in [connection_of(launch, slot) for slot in (0, 1)]:
            os.kill(connection, signal.SIGKILL)
        lost = {own_line(launch) for _ in range(2)}
        assert {line.partition(" on ")[0] for line in lost} == {
            "the connection to worker 0", "the connection to worker 1"
        }  # fmt: skip
        time.sleep(2.0)  # in which it is tried in vain
        assert all(alive(pid) for _, _, pid, _ in found)
        sshd.serve()
        assert {own_line(launch) for _ in range(2)} == {
            f"connected to worker {slot} on 127.0.0.1 again" for slot in (0, 1)
        }
        while launch.process.stdout.readline() != b"[worker 1] alive\n":
            pass  # what it writes is heard again
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0, launch.err
        assert not list(Path(tempfile.gettempdir()).glob(f"hipress-*-{found[0][2]}"))


@pytest.mark.parametrize("term", [False, True])
def test_a_worker_out_of_sight_can_be_ended(sshd, tmp_path, term):
    """While the connection is being made again, and when it is there."""
    with launched(arguments(2, *sshd.arguments(2), *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        os.kill(supervisor_of(found[0][2]), signal.SIGKILL)
        own_line(launch)
        if term:
            assert own_line(launch) == "connected to worker 0 on 127.0.0.1 again"
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 143
        assert not any(alive(pid) for _, _, pid, _ in found)


def test_workers_survive_the_launcher(sshd, tmp_path):
    with launched(arguments(2, *sshd.arguments(2), *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        launch.process.kill()
        launch.process.wait()
        launch.process.stdout.close()
        launch.process.stdout = None
        time.sleep(1.0)
        assert all(alive(pid) for _, _, pid, _ in found)
        (tmp_path / "end").touch()
        wait_until(lambda: not any(alive(pid) for _, _, pid, _ in found), 5.0, "their end")


def test_nobody_has_seen_how_they_ended(sshd, tmp_path):
    """Then none is started again: training may be over."""
    with launched(arguments(2, *sshd.arguments(2), *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        for _, _, pid, _ in found:
            os.kill(supervisor_of(pid), signal.SIGKILL)
        lines = [own_line(launch) for _ in range(4)]
        assert sum(line.startswith("connected to worker ") for line in lines) == 2
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 1
        assert launch.err.splitlines()[-1] == (
            "hipress-launch: worker 0 on 127.0.0.1, worker 1 on 127.0.0.1: out of sight; whether "
            "training has finished is not known"
        )
        assert not any(alive(pid) for _, _, pid, _ in found)


def test_a_host_that_has_started_again_has_ended_its_worker():
    """However many others are seen: it did not finish."""
    runner = ElasticRunner(Printer(), Rules(max_restarts=1))
    for uptime, unseen in ((100, False), (100_000, True)):
        slot = Slot(Task("worker 0", "worker", {}, where="host"), pid=7)
        slot.lose(1000.0)
        assert not slot.out_of_sight(1001.0) and slot.out_of_sight(1000.0 + 3600)
        runner._gone(slot, uptime, 1060.0)
        assert (slot.state, slot.unseen, slot.restarts) == (State.WAITING, unseen, 1)
        assert slot.out_of_sight(1060.0) == unseen


def test_attempts_to_connect_become_rarer():
    slot, due = Slot(Task("worker 0", "worker", {})), []
    news = [slot.lose(0.0) or due.append(slot.due) for _ in range(9)]
    assert news[0] is True and not any(news[1:])
    assert due == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
