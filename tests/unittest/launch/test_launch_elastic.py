"""Elastic launcher: slots, restarts, the end of a job, and what survives which failure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.launch import LAUNCH, REPORT, launched, marked, python, reports, run
from harness.launch_elastic import (
    FINISHES_FIRST,
    WORKER,
    alive,
    arguments,
    restart_policy,
    supervisor_of,
    ups,
)
from harness.processes import wait_until
from hipress.elastic.membership import evidence
from hipress.launch import elastic
from hipress.launch.hostfile import Host
from hipress.launch.job import LaunchTask
from hipress.launch.restarts import JobEnding, Rules, SlotState, WorkerSlot
from scripts import SCRIPTS

pytestmark = pytest.mark.usefixtures("own_folder")

# Settings that a worker receives


def test_environment_of_each_slot():
    launch = run(arguments(3, "--min-workers", "2", "--env", "T_ALL=a", *python(REPORT)))
    assert launch.process.returncode == 0 and launch.err == ""
    seen = reports(launch)
    assert sorted(seen) == ["worker 0", "worker 1", "worker 2"]
    for name, env in seen.items():
        assert env["HIPRESS_ELASTIC_SLOT"] == name.split()[1]
        assert env["HIPRESS_ELASTIC_MIN_WORKERS"] == "2"
        assert env["HIPRESS_ELASTIC_RESTART"] == "0"
        assert env["T_ALL"] == "a" and env["DMLC_NODE_HOST"] == "127.0.0.1"
        assert not {"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_WORKER_ID"} & set(env)
    for key in ("HIPRESS_SECRET", "HIPRESS_ELASTIC_AGENTS", "HIPRESS_ELASTIC_JOB"):
        assert len({env[key] for env in seen.values()}) == 1
    agents = seen["worker 0"]["HIPRESS_ELASTIC_AGENTS"].split(",")
    assert len(set(agents)) == 3
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", agent) for agent in agents)


def test_ports_from_a_base():
    base = elastic.free_ports(["127.0.0.1"])[0]
    launch = run(["--elastic", "-n", "2", "--elastic-port", str(base), *python(REPORT)])
    agents = reports(launch)["worker 1"]["HIPRESS_ELASTIC_AGENTS"]
    assert agents == f"127.0.0.1:{base},127.0.0.1:{base + 1}"


def test_addresses_on_other_hosts():
    hosts = [Host("u@192.0.2.1", slots=2), Host("unknown.invalid"), Host("2001:db8::1")]
    args = type("Args", (), {"elastic_port": None, "min_workers": 1})
    job = type("Job", (), {"num_workers": 4})
    assert elastic.describe(args, job, hosts).agents == [
        "192.0.2.1:29700",
        "192.0.2.1:29701",
        "unknown.invalid:29702",
        "[2001:db8::1]:29703",
    ]


# Restarts


def test_a_killed_worker_is_started_again_in_its_slot(tmp_path):
    with launched(arguments(3, *python(WORKER)), cwd=tmp_path) as launch:
        first = ups(launch, 3)
        os.kill(first[1][2], signal.SIGKILL)
        (again,) = ups(launch, 1)
        assert again[:2] == (1, 1) and again[3] == first[1][3] and again[2] != first[1][2]
        os.kill(again[2], signal.SIGTERM)
        assert ups(launch, 1)[0][:2] == (1, 2)
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0
        launch.gone(3.0)
    assert launch.err.splitlines() == [
        "hipress-launch: worker 1 was killed by SIGKILL (signal 9); restart 1 of 3",
        "hipress-launch: worker 1 was killed by SIGTERM (signal 15); restart 2 of 3",
    ]


def read_until(launch, line):
    """Wait until a worker prints a line."""
    while (found := launch.process.stdout.readline().decode()) != line:
        assert found, "the launcher ended early"


def test_workers_learn_which_processes_have_ended(tmp_path):
    options = ["--max-restarts", "1", "--env", "DIE=1.0 1.1", "--env", "PRINTS_ENDS=1"]
    with launched(arguments(3, *options, *python(WORKER)), cwd=tmp_path) as launch:
        table = list(evidence.host())
        read_until(launch, f"[worker 0] ends {{'1': 1}} {table}\n")  # it is restarted once
        read_until(launch, f"[worker 0] ends {{'1': None}} {table}\n")  # and not again
        (tmp_path / "end").touch()
        launch.finish(20.0)


def slot_with_ends(means=None):
    """Return a policy, its only slot, and the ends that it would publish."""
    policy = restart_policy(Rules(max_restarts=9))
    task = LaunchTask("worker 0", "worker", {"env": {"HIPRESS_ELASTIC_SLOT": "0"}}, via=means)
    slot = WorkerSlot(task)
    policy._slots = [slot]
    return policy, slot, policy._ended_slots


def end_once(policy, slot, **fields):
    """Start a process in a slot, and end it as a supervisor has reported it."""
    slot.started(None, 0.0)
    slot.set_process(dict(PROCESS))
    for name, value in fields.items():
        setattr(slot, name, value)
    policy._supervisor_ended(slot, 0, 1.0)


PROCESS = {"pid": 7, "boot": "boot", "namespace": "pid:[1]"}


def test_end_after_a_lost_start_report_is_not_published():
    """An end after a lost start report is not published: the process whose report was lost may run,
    and the later one fails at the bound port."""
    policy, slot, endings = slot_with_ends(["ssh"])
    slot.started(None, 0.0)
    policy._supervisor_ended(slot, 255, 1.0)
    assert slot.state == SlotState.WAITING and slot.restarts == 0
    end_once(policy, slot, reported=1)
    assert slot.restarts == 1 and endings == {}


def test_published_end_names_the_process_table():
    policy, slot, endings = slot_with_ends()
    end_once(policy, slot, reported=1)
    assert endings == {"0": (1, "boot", "pid:[1]")}
    endings.clear()
    slot.started(None, 0.0)
    slot.set_process({**PROCESS, "namespace": ""})
    slot.reported = 1
    policy._supervisor_ended(slot, 0, 1.0)
    assert not endings


def test_end_after_a_failed_start_is_not_published():
    policy, slot, endings = slot_with_ends(["mpirun"])
    slot.started(None, 0.0)
    policy._supervisor_ended(slot, 1, 1.0)
    end_once(policy, slot, reported=1)
    assert slot.restarts == 2 and endings == {}


def test_end_after_one_with_leftover_processes_is_not_published():
    policy, slot, endings = slot_with_ends()
    end_once(policy, slot, reported=1)
    assert list(endings) == ["0"]
    endings.clear()
    end_once(policy, slot, reported=1, left_processes=True)
    end_once(policy, slot, reported=1)
    assert slot.restarts == 3 and endings == {}


def test_end_after_an_adopted_process_is_not_published(monkeypatch):
    """An end after an adopted process is not published. Ends of adopted workers are uncertain: only
    their process group is ended."""
    monkeypatch.setattr(os, "waitpid", lambda pid, _: (pid, 9))
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    policy, slot, endings = slot_with_ends()
    slot.started(None, 0.0)
    slot.set_process({**PROCESS, "folder": "/nonexistent"})
    policy._supervisor_ended(slot, -9, 1.0)
    end_once(policy, slot, reported=1)
    assert slot.restarts == 2 and endings == {}


def test_launcher_does_not_wait_for_a_supervisor_that_reads_nothing():
    policy, slot, endings = slot_with_ends(["sleep", "60"])
    policy._start_in(slot)
    supervisor = slot.running.process
    try:

        def publish():
            for restarts in range(5000):
                endings["1"] = (restarts, "boot", "pid:[1]")
                policy._send_ended_slots(slot)

        thread = threading.Thread(target=publish, daemon=True)
        thread.start()
        thread.join(5.0)
        assert not thread.is_alive()
        assert len(slot.running.unsent) < 100  # part of a line
        pipe = os.open(f"/proc/{supervisor.pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK)
        data = b""
        while slot.ended_slots_due or not data:
            data += os.read(pipe, 1 << 20)
            policy.runner.send(slot.running, b"")
            policy.step(0.0)
        data += os.read(pipe, 1 << 20)
        os.close(pipe)
        # The first of these lines is the rest of the task.
        lines = data[data.index(policy.runner.word.encode()) :].splitlines()[1:]
        assert lines[-1] == b'ENDED {"1": [4999, "boot", "pid:[1]"]}'
        assert all(line.startswith(b"ENDED {") and line.endswith(b"}") for line in lines)
    finally:
        supervisor.kill()
        supervisor.wait()
        policy.runner.close(slot.running)


def test_used_up_restarts_end_the_job_in_one_sentence(tmp_path):
    launch = run(
        arguments(2, "--min-workers", "2", "--max-restarts", "2", *python(WORKER)),
        env={"DIE": "1", "STATUS": "7"},
        cwd=tmp_path,
    )
    assert launch.process.returncode == 7
    assert launch.out.count("up 1 ") == 3
    assert launch.err.splitlines() == [
        "hipress-launch: worker 1 exited with status 7; restart 1 of 2",
        "hipress-launch: worker 1 exited with status 7; restart 2 of 2",
        "hipress-launch: 1 of 2 workers can still run, fewer than --min-workers 2: worker 1 "
        "exited with status 7; stopping the job",
    ]


def test_the_job_goes_on_without_a_slot_while_enough_are_left(tmp_path):
    command = arguments(3, "--min-workers", "2", "--max-restarts", "0", *python(WORKER))
    with launched(command, env={"DIE": "2.0"}, cwd=tmp_path) as launch:
        ups(launch, 3)
        assert launch.process.stderr.readline().decode() == (
            "hipress-launch: worker 2 exited with status 1; it is not started again "
            "(--max-restarts 0), the job goes on without it\n"
        )
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0
    assert launch.err == ""


def test_the_status_is_that_of_the_first_that_died():
    policy = restart_policy(Rules(min_workers=2, max_restarts=0))
    policy._slots = [
        WorkerSlot(LaunchTask(f"worker {i}", "worker", {}), process={"pid": 7}) for i in range(3)
    ]
    for when, slot, status in ((10.0, 2, 5), (11.0, 0, 7)):
        policy._ended(policy._slots[slot], status, "died", when)
    policy.step(20.0)
    assert policy.runner.verdict == 5


def test_a_command_that_is_not_there_is_not_tried_again():
    launch = run(arguments(2, "no-such-command-anywhere"))
    assert launch.process.returncode == 127
    assert "restart 1" not in launch.err and "can still run, fewer than" in launch.err


def test_delays_grow_until_a_worker_lives():
    slot, now, delays = WorkerSlot(LaunchTask("worker 0", "worker", {})), 100.0, []
    for _ in range(8):
        slot.started(None, now)
        now += 1.0
        slot.died(-9, "", now, limit=9)
        assert slot.state == SlotState.WAITING
        delays.append(slot.due - now)
        now = slot.due
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    slot.started(None, now)
    slot.died(-9, "", now + 11.0, limit=9)
    assert slot.due - now == pytest.approx(11.1)
    slot.started(None, slot.due)
    slot.died(-9, "", slot.due, limit=9)
    assert slot.state == SlotState.DEAD


# The end


def test_a_worker_that_fails_after_the_first_has_finished_is_the_status(tmp_path):
    launch = run(arguments(2, *python(FINISHES_FIRST), "5"), cwd=tmp_path)
    assert launch.process.returncode == 5
    assert launch.err == (
        "hipress-launch: worker 1 exited with status 5 after worker 0 had finished\n"
    )


def test_a_restart_that_came_too_late_does_not_count(tmp_path):
    launch = run(arguments(2, *python(FINISHES_FIRST), "late"), cwd=tmp_path)
    assert launch.process.returncode == 0
    assert "worker 1 exited with status 1 after worker 0 had finished" in launch.err


def test_which_failures_count_at_the_end():
    def status(restarts: int, began: float, ending: float, waits: bool) -> list[int]:
        slot = WorkerSlot(LaunchTask("worker 0", "worker", {}), restarts=restarts)
        slot.started(None, began)
        if waits:
            slot.died(3, "", ending - 0.05, limit=9)
        end = JobEnding(ending, "worker 1")
        end.note(slot, 3)
        return end.failed

    assert status(0, 100.0, 110.0, waits=False) == [3]
    assert status(0, 100.0, 110.0, waits=True) == [3]
    assert status(1, 100.0, 110.0, waits=False) == []
    assert status(1, 100.0, 110.0, waits=True) == []
    assert status(1, 100.0, 170.0, waits=False) == [3]


def test_which_stopped_workers_count():
    """Stopped workers count unless they were restarted long ago and are far from the script's end.
    Those have the same state as other workers, but the first slot saves it."""

    def status(restarts: int, first: bool) -> list[int]:
        slot = WorkerSlot(LaunchTask("worker", "worker", {}), restarts=restarts)
        slot.started(None, 100.0)
        end = JobEnding(5000.0, "worker 1")
        end.note_stopped(slot, 124, first)
        return end.failed

    assert status(0, first=False) == status(0, first=True) == status(2, first=True) == [124]
    assert status(2, first=False) == []


def test_who_does_not_finish_is_stopped():
    script = SCRIPTS / "launch" / "stops_itself.py"
    launch = run(arguments(2, "--finish-timeout", "0.5", *python(script)))
    assert launch.process.returncode == 124
    assert launch.err == (
        "hipress-launch: worker 1 had not finished 0.5 s after worker 0; stopping\n"
    )


def test_timeout(tmp_path):
    launch = run(arguments(2, "--timeout", "0.7", *python(WORKER)), cwd=tmp_path)
    assert launch.process.returncode == 124


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_launcher_ends_all(number, tmp_path):
    with launched(arguments(3, *python(WORKER)), cwd=tmp_path) as launch:
        ups(launch, 3)
        launch.process.send_signal(number)
        assert launch.finish(20.0) == 128 + number
        launch.gone(3.0)
    assert launch.err == f"hipress-launch: {number.name}; stopping the job\n"


# Which processes survive which


def test_workers_survive_the_launcher_and_supervisors_can_still_end_them(tmp_path):
    with launched(arguments(2, *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        launch.process.kill()
        launch.process.wait()
        time.sleep(0.5)  # they write all the time
        assert all(alive(pid) for _, _, pid, _ in found)
        os.kill(supervisor_of(found[0][2]), signal.SIGTERM)
        wait_until(lambda: not alive(found[0][2]), 5.0, "the worker of a terminated supervisor")
        assert alive(found[1][2])
        (tmp_path / "end").touch()
        launch.gone(10.0)


def test_workers_survive_the_launcher_and_their_supervisors(tmp_path):
    with launched(arguments(2, *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        parents = [supervisor_of(pid) for _, _, pid, _ in found]
        for pid in (parents[0], launch.process.pid, parents[1]):
            os.kill(pid, signal.SIGKILL)
        launch.process.wait()
        time.sleep(0.5)
        assert all(alive(pid) for _, _, pid, _ in found)
        (tmp_path / "end").touch()
        launch.gone(10.0)


def test_a_worker_that_lost_its_supervisor_goes_on_and_is_still_watched(tmp_path):
    with launched(arguments(2, *python(WORKER)), cwd=tmp_path) as launch:
        found = ups(launch, 2)
        pid = found[0][2]
        os.kill(supervisor_of(pid), signal.SIGKILL)
        launch.process.stderr.readline()
        time.sleep(0.3)
        assert alive(pid)
        os.kill(pid, signal.SIGKILL)
        (again,) = ups(launch, 1)
        assert again[:2] == (0, 1) and again[3] == found[0][3]
        os.kill(supervisor_of(again[2]), signal.SIGKILL)
        launch.process.stderr.readline(), launch.process.stderr.readline()
        assert alive(again[2])
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(10.0) == 143
        launch.gone(3.0)


def test_a_status_is_known_although_its_folder_was_tidied_up(tmp_path):
    with launched(arguments(2, *python(WORKER)), cwd=tmp_path) as launch:
        ups(launch, 2)
        folders = list(Path(os.environ["TMPDIR"]).glob("hipress-*"))
        assert len(folders) == 2
        for folder in folders:
            folder.rmdir()
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0, launch.err
    assert not list(Path(os.environ["TMPDIR"]).glob("hipress-*"))


@pytest.mark.slow
def test_output_that_is_read_takes_no_space(tmp_path):
    """Output waits in a file, and the supervisor frees what the launcher has read.

    Cost: 16 MiB pass the launcher, four times as much as it may leave in the file.
    """
    script = SCRIPTS / "launch" / "much_output.py"
    with launched(arguments(1, *python(script)), cwd=tmp_path) as launch:
        size = 0
        while True:
            line = launch.process.stdout.readline()
            size += len(line)
            if b"written" in line:
                break
        assert size >= 16 << 20
        worker = next(
            pid
            for pid in marked(launch.mark)
            if b"-S\0" + bytes(script) in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        wait_until(lambda: os.stat(f"/proc/{worker}/fd/1").st_blocks * 512 < 4 << 20, 5.0, "holes")
        (tmp_path / "end").touch()
        assert launch.finish(20.0) == 0
    assert launch.err == "[worker 0] no end of line\n"


# What is refused


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "--elastic -n 2 -s 1",
            "--elastic does not go with -s 1, since servers are not elastic yet: "
            "leave out -s, or use -s 0",
        ),
        (
            "--elastic -n 2 --launcher mpi",
            "--elastic with --launcher mpi needs a host file (-H FILE), to know each worker's "
            "address; batch systems write one, as PBS does (-H $PBS_NODEFILE)",
        ),
        (
            "--elastic -n 2 --launcher slurm",
            "--elastic with --launcher slurm starts each worker as a job step of its own: run it "
            "inside an allocation, from sbatch or salloc",
        ),
        (
            "--elastic -n 2 --min-workers 3",
            "--min-workers 3 is more than the 2 workers that -n starts",
        ),
        (
            "--elastic -n 2 --topo ring",
            "--topo is not for elastic jobs: their script says how gradients travel, beside the "
            "type of compression",
        ),
        ("--elastic -n 2 --comprplan auto", "--comprplan is not for elastic jobs: their script "),
        (
            "--elastic -n 2 -p 9000",
            "--elastic starts workers only, neither servers nor a scheduler: leave out --port",
        ),
        (
            "--elastic -n 2 --elastic-port 65535",
            "--elastic-port must be from 1 to 65534 for 2 workers, not 65535",
        ),
        ("-n 2 --min-workers 1", "--min-workers is for elastic jobs: add --elastic"),
        ("-n 2 --max-restarts 0", "--max-restarts is for elastic jobs: add --elastic"),
    ],
)
def test_refusals_are_one_sentence(line, sentence):
    done = subprocess.run(
        [sys.executable, str(LAUNCH), *line.split(), "true"],
        timeout=30,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2 and done.stdout == ""
    (only,) = done.stderr.splitlines()
    assert only.startswith(f"hipress-launch: {sentence}")


def test_a_busy_port_is_refused():
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen(1)
        port = holder.getsockname()[1]
        launch = run(["--elastic", "-n", "1", "--elastic-port", str(port), "true"])
    assert launch.process.returncode == 2
    assert f"slot 0 cannot listen on 127.0.0.1 port {port}: " in launch.err


def test_help_says_how():
    done = subprocess.run(
        [sys.executable, str(LAUNCH), "--help"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    for text in (
        "hipress launch --elastic --min-workers 2 --max-restarts 3 -n 4 python train.py",
        "--finish-timeout",
        "--elastic-port",
    ):
        assert text in done.stdout
