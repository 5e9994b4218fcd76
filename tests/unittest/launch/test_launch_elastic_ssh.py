"""Elastic launcher over ssh: which processes are watched and restarted, whatever breaks."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.launch import launched, python
from harness.launch_elastic import (
    WORKER,
    alive,
    arguments,
    restart_policy,
    supervisor_of,
    ups,
)
from harness.processes import wait_until
from hipress.launch import supervisor
from hipress.launch.job import LaunchTask
from hipress.launch.output import LineSplitter
from hipress.launch.restarts import (
    LATE_SECONDS,
    JobEnding,
    Rules,
    SlotState,
    WorkerSlot,
    left_status,
)
from hipress.launch.runner import Running

pytestmark = pytest.mark.usefixtures("own_folder")


def own_line(launch):
    """Return the launcher's next line on stderr, where login shells may have lines, too."""
    while not (line := launch.process.stderr.readline().decode()).startswith("hipress-launch:"):
        assert line, "the launcher has ended"
    return line.removeprefix("hipress-launch: ").rstrip("\n")


def left_folders(sshd, supervisors):
    """Return the folders in which these have left, or will leave, a status."""
    return [path for pid in supervisors for path in sshd.directory.glob(f"hipress-{pid}-*")]


def connections(launch):
    """Return the ssh processes that the launcher has started."""
    children = Path(f"/proc/{launch.process.pid}/task/{launch.process.pid}/children").read_text()
    return sorted(int(pid) for pid in children.split() if alive(int(pid)))


def connection_of(launch, slot):
    """Return the ssh process that the launcher has started for one of its slots."""
    return connections(launch)[slot]


@pytest.mark.slow
def test_restarts_and_a_lost_supervisor(sshd, tmp_path):
    """Workers are restarted over ssh, and a lost supervisor is replaced.

    Cost: Several connections to a real sshd are made, and grace periods of 1 s pass.
    """
    mark = f"HIPRESS_TEST_SSH={os.urandom(8).hex()}"
    command = arguments(3, *sshd.arguments(2), "--env", mark, *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 3)
        os.kill(found[2][2], signal.SIGKILL)
        (again,) = ups(launch, 1)
        assert again[:2] == (2, 1) and again[3] == found[2][3]
        assert own_line(launch) == (
            "worker 2 on 127.0.0.1 was killed by SIGKILL (signal 9); restart 1 of 3"
        )
        os.kill(supervisor_of(found[0][2]), signal.SIGKILL)
        assert own_line(launch).startswith("the connection to worker 0 on 127.0.0.1 has ended")
        assert own_line(launch) == "connected to worker 0 on 127.0.0.1 again"
        assert alive(found[0][2])
        os.kill(found[0][2], signal.SIGKILL)
        assert own_line(launch) == "worker 0 on 127.0.0.1 ended unseen; restart 1 of 3"
        # It also waits whether the other workers have finished.
        (third,) = ups(launch, 1)
        assert third[:2] == (0, 1)
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 143
        assert not any(alive(pid) for pid in (found[1][2], again[2], third[2]))


@pytest.mark.slow
def test_a_broken_connection_is_made_again(sshd, tmp_path):
    """A broken connection is made again. The worker continues meanwhile. Its supervisor lives, so
    its status is known in the end."""
    command = arguments(2, *sshd.arguments(2), "--env", "STATUS=3", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 2)
        supervisors = [supervisor_of(pid) for _, _, pid, _ in found]
        sshd.stop()
        for connection in [connection_of(launch, slot) for slot in (0, 1)]:
            os.kill(connection, signal.SIGKILL)
        lost = {own_line(launch) for _ in range(2)}
        assert {line.partition(" on ")[0] for line in lost} == {
            "the connection to worker 0",
            "the connection to worker 1",
        }
        time.sleep(2.0)  # in which attempts fail
        assert all(alive(pid) for _, _, pid, _ in found)
        sshd.serve()
        assert len(left_folders(sshd, supervisors)) == 2
        assert {own_line(launch) for _ in range(2)} == {
            f"connected to worker {slot} on 127.0.0.1 again" for slot in (0, 1)
        }
        while launch.process.stdout.readline() != b"[worker 1] alive\n":
            pass  # what it writes arrives again
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0, launch.err
    wait_until(lambda: not left_folders(sshd, supervisors), 2.0, "the end of the folders")


@pytest.mark.slow
def test_a_host_that_is_away_costs_no_restarts(sshd, tmp_path):
    command = arguments(2, *sshd.arguments(2), "--max-restarts", "1", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 2)
        sshd.stop()
        try:
            os.kill(found[0][2], signal.SIGKILL)
            assert own_line(launch).endswith("was killed by SIGKILL (signal 9); restart 1 of 1")
            assert own_line(launch) == (
                "worker 0 on 127.0.0.1 could not be reached (ssh exited with status 255); "
                "trying again"
            )
            time.sleep(2.0)  # in which attempts fail
        finally:
            sshd.serve()
        assert ups(launch, 1)[0][:2] == (0, 1)
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0, launch.err


@pytest.mark.parametrize("reached", [False, True])
def test_how_long_a_host_that_is_away_is_waited_for(reached):
    slot = WorkerSlot(LaunchTask("worker 0", "worker", {}, via=["ssh"], host="host"))
    slot.reached = reached
    slot.unseen = True
    slot.started(None, 100.0)
    assert not slot.put_off(1, 100.1) and slot.put_off(255, 100.5)
    assert (slot.state, slot.due, slot.restarts) == (SlotState.WAITING, 101.0, 0)
    assert slot.unseen and not slot.in_doubt  # nothing has run
    slot.unseen = False
    slot.started(None, 101.0)
    assert slot.put_off(255, 129.0) and slot.due == 130.0 and not slot.out_of_sight(130.0)
    slot.started(None, 131.0)
    assert slot.put_off(255, 100.0 + 3600) is reached
    assert slot.out_of_sight(100.0 + 3600) is reached
    ending = JobEnding(100.0 + 3600, "worker 1")
    ending.note(slot, 255)
    assert not ending.failed
    slot.set_process({"pid": 7})
    ending.note(slot, 7)
    assert slot.reached and slot.unreached_since is None and ending.failed == [7]


def test_half_a_report_is_none():
    policy = restart_policy(Rules())
    running = Running(LaunchTask("worker 0", "worker", {}), None, 0.0)
    policy._slots = [WorkerSlot(LaunchTask("worker 0", "worker", {}), running, process={"pid": 7})]
    splitter = LineSplitter(policy.runner.word)
    assert splitter.feed(f'last{policy.runner.word} {{"exit"\n'.encode()) == [b"last"]
    policy.runner.take_reports(running, splitter)
    assert policy._slots[0].reported is None


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("term", [False, True])
def test_a_worker_out_of_sight_can_be_ended(sshd, tmp_path, term):
    """A worker out of sight can be ended, both while the connection is being made again and once it
    exists."""
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


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("seconds_between", [0.0, 3.0])
def test_nobody_has_seen_how_they_ended(sshd, tmp_path, seconds_between):
    """No worker is restarted if no process has seen how they ended: training may have ended. This
    holds even if one takes longer to end."""
    command = arguments(2, *sshd.arguments(2), "--env", f"LATE={seconds_between}", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
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


@pytest.mark.slow
def test_who_finishes_while_the_connection_is_broken_has_finished(sshd, tmp_path):
    """A worker that finishes while the connection is broken has finished: its supervisor has left
    the status."""
    command = arguments(2, *sshd.arguments(2), "--env", "LATE=3", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        supervisors = [supervisor_of(pid) for _, _, pid, _ in ups(launch, 2)]
        sshd.stop()
        os.kill(connection_of(launch, 0), signal.SIGKILL)
        assert own_line(launch).startswith("the connection to worker 0 on 127.0.0.1 has ended")
        (tmp_path / "end").touch()  # worker 1 takes three seconds more
        time.sleep(1.0)
        sshd.serve()
        assert launch.finish(20.0) == 0, launch.err
    wait_until(lambda: not left_folders(sshd, supervisors), 2.0, "the end of the folders")


@pytest.mark.slow
def test_a_job_of_which_nothing_is_in_sight_can_be_ended(sshd, tmp_path):
    with launched(arguments(1, *sshd.arguments(2), *python(WORKER)), cwd=tmp_path) as launch:
        ((_, _, pid, _),) = ups(launch, 1)
        sshd.stop()
        os.kill(connection_of(launch, 0), signal.SIGKILL)
        own_line(launch)
        time.sleep(1.0)  # an attempt fails
        vain = connections(launch)
        sshd.serve()
        wait_until(lambda: not any(map(alive, vain)), 20.0, "the end of vain attempts")
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 143
        wait_until(lambda: not alive(pid), 5.0, "the worker's end")


@pytest.mark.slow
def test_what_a_worker_without_a_supervisor_leaves_is_ended(sshd, tmp_path):
    """Processes that a worker without a supervisor leaves are ended before its restart.

    Cost: Several connections to a real sshd are made.
    """
    command = arguments(2, *sshd.arguments(2), "--env", "CHILD=1", *python(WORKER))
    with launched(command, cwd=tmp_path) as launch:
        found = ups(launch, 2)
        os.kill(supervisor_of(found[0][2]), signal.SIGKILL)
        own_line(launch)
        assert own_line(launch) == "connected to worker 0 on 127.0.0.1 again"
        before = processes_with(found[0][2])
        assert len(before) == 2
        os.kill(found[0][2], signal.SIGKILL)
        wait_until(lambda: not any(map(alive, before)), 5.0, "the end of what was left")
        assert ups(launch, 1)[0][:2] == (0, 1)
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(20.0) == 143


def processes_with(pid):
    """Return the processes whose job, slot and restart are a worker's."""

    def marks(pid):
        try:
            entries = Path(f"/proc/{pid}/environ").read_bytes().split(bytes(1))
        except OSError:
            return None
        return {entry for entry in entries if entry.startswith(b"HIPRESS_ELASTIC_")}

    wanted = marks(pid)
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and marks(entry.name) == wanted
    ]


def test_a_host_that_has_started_again_has_ended_its_worker():
    """A rebooted host has ended its worker, which did not finish, however many other hosts are
    seen."""
    policy = restart_policy(Rules(max_restarts=1))
    for with_host in (True, False):
        slot = WorkerSlot(LaunchTask("worker 0", "worker", {}, host="host"), process={"pid": 7})
        slot.gone_with_host = with_host
        slot.lose(1000.0)
        assert not slot.out_of_sight(1001.0) and slot.out_of_sight(1000.0 + 3600)
        policy._gone(slot, 1060.0)
        assert (slot.state, slot.unseen, slot.restarts) == (SlotState.WAITING, not with_host, 1)
        assert slot.out_of_sight(1060.0) is not with_host


@pytest.fixture
def watcher():
    """Return a watcher that has not started, its module, and its reports."""
    watcher = supervisor.Watcher.__new__(supervisor.Watcher)
    watcher.reports, watcher.control = [], 0
    watcher.report = watcher.report_end = lambda **what: watcher.reports.append(what)
    watcher.serve = lambda _: None
    own = supervisor.ProcessHandle(os.getpid())
    about = {"pid": 2**22 + 1, "since": 1, "supervisor": [own.pid, own.since - 1]}
    about["folder"] = "/nonexistent"
    about["boot"] = supervisor.boot_id()
    about["namespace"] = supervisor.namespace()
    about["machine"] = supervisor.machine()
    watcher.spec = {"watch": about, "marks": [f"HIPRESS_TEST_MARK={os.urandom(8).hex()}"]}
    return watcher, supervisor


def test_watcher_finds_ended_process_and_restarted_host(watcher, monkeypatch):
    watcher, module = watcher
    watcher.run()
    monkeypatch.setattr(module, "machine", lambda: "an id")
    watcher.spec["watch"].update(machine="an id", boot="earlier")
    watcher.run()
    assert watcher.reports == [
        {"gone": True, "restarted": False, "left": 0},
        {"gone": True, "restarted": True, "left": 0},
    ]


@pytest.mark.parametrize(
    "about",
    [
        {"boot": "other", "machine": "other"},
        {"boot": "other", "machine": ""},
        {"namespace": "pid:[1]"},
        {"namespace": ""},
        {"machine": "other"},
    ],
    ids=["another host", "unknown host", "another container", "unknown container", "clone"],
)
def test_watcher_decides_nothing_elsewhere(watcher, monkeypatch, about):
    watcher, module = watcher
    if not about.get("machine", "some"):
        monkeypatch.setattr(module, "machine", lambda: "")
    watcher.spec["watch"].update(about)
    watcher.run()
    assert watcher.reports == [{"elsewhere": True}]


def test_watcher_waits_for_leftovers_and_counts_the_rest(watcher, monkeypatch):
    watcher, module = watcher
    looks = [[7], [7], []]
    watcher.marked = lambda: looks.pop(0)
    monkeypatch.setattr(module, "kill_all", lambda *_: None)
    watcher.run()
    watcher.marked = lambda: [7]
    monkeypatch.setattr(module, "LEFTOVER_SECONDS", 0.01)
    watcher.run()
    assert [report["left"] for report in watcher.reports] == [0, 1] and not looks


def make_folder_of_others(folder, how):
    """Make a folder as another user might, after a cleanup job removed the private one."""
    folder.mkdir(mode=0o700)
    if how == "open":
        folder.chmod(0o777)
    elif how == "link":
        folder.rename(folder.with_name("target"))
        folder.symlink_to("target")
    elif os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        pytest.skip("only root can give a folder away")


@pytest.mark.parametrize("how", ["own", "open", "link", "foreign"])
def test_supervisor_uses_only_a_private_folder(watcher, tmp_path, how):
    watcher, module = watcher
    folder = tmp_path / "folder"
    watcher.folder = str(folder)
    watcher.leave("status", "3")  # makes the folder
    assert watcher.left_status() == left_status(str(folder)) == 3
    (folder / "status").write_text("no number")
    assert watcher.left_status() is None
    if how == "own":
        return
    shutil.rmtree(folder)
    make_folder_of_others(folder, how)
    watcher.leave("ended", "{}")
    assert not list(folder.iterdir())
    (folder / "status").write_text("0")
    assert watcher.left_status() is None and left_status(str(folder)) == -9


def test_process_whose_first_thread_has_ended_still_runs(watcher):
    watcher, module = watcher
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    mark = watcher.spec["marks"][0]
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **dict([mark.split("=")])}
    ) as process:
        try:
            stat = Path(f"/proc/{process.pid}/stat")
            wait_until(lambda: " Z " in stat.read_text(), 10.0, "the end of the first thread")
            assert module.ProcessHandle(process.pid).runs
            assert process.pid in supervisor.descendants()
            assert watcher.marked() == [process.pid]
        finally:
            process.kill()
            wait_until(lambda: process.poll() is not None, 5.0, "its end")


def watched(policy):
    """Return a lost slot whose connection is being made again."""
    spec = {"env": {"HIPRESS_ELASTIC_SLOT": "0"}}
    task = LaunchTask("worker 0", "worker", spec, via=["ssh"], host="host")
    slot = WorkerSlot(task, Running(task, None, 0.0))
    slot.running.process = type("Process", (), {"stdin": io.BytesIO()})
    slot.set_process({"pid": 7, "boot": "boot", "namespace": "namespace"})
    slot.lose(0.0)
    policy._slots = [slot]
    return slot


def test_connection_to_another_host_ends_nothing(capfd):
    policy = restart_policy(Rules())
    slot = watched(policy)
    for _ in range(2):
        policy.report(slot.running, {"elsewhere": True})
        policy._supervisor_ended(slot, 0, 1.0)
    assert slot.state == SlotState.LOST and slot.restarts == 0 and not policy._ended_slots
    assert capfd.readouterr().err == (
        "hipress-launch: ssh has reached another host or container than the one of worker 0 on "
        "host, which may still run; trying again\n"
    )


@pytest.mark.parametrize("left", [0, 1])
def test_end_without_a_status_is_published_if_nothing_is_left(left):
    policy = restart_policy(Rules())
    slot = watched(policy)
    policy.report(slot.running, {"gone": True, "restarted": False, "left": left})
    policy._supervisor_ended(slot, 0, 1.0)
    assert slot.state == SlotState.WAITING and bool(policy._ended_slots) == (not left)


def test_who_was_started_after_an_end_that_nobody_saw_shows_nothing():
    now, slot = 10.0, WorkerSlot(LaunchTask("worker 0", "worker", {}), began=1.0)
    assert slot.shows_training(now) and not slot.shows_training(0.5)
    slot.unseen = True
    slot.started(None, 5.0)
    assert not slot.shows_training(now) and not slot.unseen
    slot.started(None, 6.0)  # after an end that was seen
    assert slot.shows_training(now)


def test_doubt_ends_once_others_have_gone_on_for_long():
    old, new = (WorkerSlot(LaunchTask(f"worker {i}", "worker", {})) for i in range(2))
    old.started(None, 1.0)
    new.unseen = True
    new.started(None, 100.0)
    new.settle([old], 120.0)
    assert new.in_doubt and not new.shows_training(200.0)
    new.settle([old], 100.0 + LATE_SECONDS)
    assert not new.in_doubt and new.shows_training(200.0)


def test_a_failure_that_was_seen_shows_that_training_is_not_over():
    policy = restart_policy(Rules(max_restarts=2))
    unseen, other = (
        WorkerSlot(LaunchTask(f"worker {i}", "worker", {}), process={"pid": 7}) for i in range(2)
    )
    policy._slots = [unseen, other]
    unseen.gone_with_host = False
    policy._gone(unseen, 50.0)
    other.started(None, 60.0)
    assert not policy._may_start(unseen)
    other.process = {"pid": 8}
    policy._ended(other, -9, "was killed", 70.0)
    other.started(None, 71.0)
    assert policy._may_start(unseen)


def test_what_a_supervisor_has_given_back_is_skipped():
    class Output:
        def __init__(self):
            self.taken = b""

        def write(self, data):
            self.taken += data[:1000]
            return len(data[:1000])

    output = Output()
    with tempfile.TemporaryFile() as file:
        number = Path(f"/proc/self/fd/{file.fileno()}").name
        reader = supervisor.Reader(
            os.getpid(), number, output, supervisor.ProcessHandle(os.getpid())
        )
        file.write(b"first" + bytes(200_000) + b"second" + bytes(3) + 5_000 * b"x")
        file.flush()
        copies = 0
        while reader.copy():
            copies += 1
            assert copies < 100
        reader.file.close()
    assert output.taken == b"firstsecond" + 5_000 * b"x"


def test_attempts_to_connect_become_rarer():
    slot, due = WorkerSlot(LaunchTask("worker 0", "worker", {})), []
    report = [slot.lose(0.0) or due.append(slot.connect_due) for _ in range(9)]
    assert report[0] is True and not any(report[1:])
    assert due == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


@pytest.mark.parametrize("at_start, now", [("a boot", ""), ("", "a boot"), ("", "")])
def test_unknown_boot_id_is_no_evidence_of_a_restart(monkeypatch, at_start, now):
    reports = []
    watcher = object.__new__(supervisor.Watcher)
    watcher.spec = {
        "watch": {
            "folder": "/nonexistent",
            "pid": os.getpid(),
            "since": 1,
            "boot": at_start,
            "namespace": "pid:[1]",
            "machine": "a machine",
            "supervisor": [os.getpid(), 1],
        }
    }
    monkeypatch.setattr(supervisor, "boot_id", lambda: now)
    monkeypatch.setattr(supervisor, "namespace", lambda: "pid:[1]")
    monkeypatch.setattr(supervisor, "machine", lambda: "a machine")
    watcher.report = lambda **values: reports.append(values)
    watcher.run()
    assert reports == [{"elsewhere": True}]
