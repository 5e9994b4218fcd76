"""`hipress debug` of elastic jobs: the view, its workers, and which one waits for which."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from elastic_training import command
from harness.elastic import ElasticJob
from harness.processes import wait_until
from test_debug import ask_now, hipress

pytest.importorskip("torch")


@pytest.fixture
def start(tmp_path):
    """Start a job of elastic_training.py, whose dumps are in tmp_path / "dumps"."""
    program, jobs = command(), []

    def make(workers, **options):
        env = {"HIPRESS_DEBUG_DIR": str(tmp_path / "dumps"), **options.pop("env", {})}
        jobs.append(ElasticJob(program, workers, env=env, **options))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


def ask(job, slots, folder, text, timeout=40):
    """Request dumps until the output of `hipress debug` matches a regular expression, and return
    it. The output follows the caller's actions after some time."""
    end = time.monotonic() + timeout
    while True:
        asked = time.time()
        for slot in slots:
            job.kill(slot, signal.SIGUSR1)

        def answered(asked=asked):
            files = list(folder.glob("agent.*.json")) if folder.is_dir() else []
            return sum(1 for path in files if path.stat().st_mtime > asked - 0.01) >= len(slots)

        wait_until(answered, 20, "the agents' dumps")
        done = hipress("debug", folder)
        assert done.returncode == 0, done.stderr
        if re.search(text, done.stdout):
            return done.stdout
        assert time.monotonic() < end, done.stdout


@pytest.mark.slow
def test_who_is_late_in_the_present_view_and_older_views_do_not_confuse(start, tmp_path):
    dumps = tmp_path / "dumps"
    job = start(3, env={"LATE": "2 2"})
    wait_until(lambda: job.step(0) >= 20, 120, "20 steps")
    ask(job, range(3), dumps, "the native job of view 1:")
    job.kill(1)
    job.wait_for("worker 2", "late", 120)
    # In view 1 rank 1 was also late: it had died.
    late = r"rank 1 has not pushed iteration \d+ of .*; rank 0 waits for it"
    # Slot 2's agent may write its first dump before it has received view 2.
    pids = [job.processes[f"worker {slot}"].pid for slot in (0, 2)]
    rows = rf"\n +0 +0 +{pids[0]} on \S+ +2 +\d+ +\n +2 +1 +{pids[1]} on \S+ +2 +\d+ +\n"
    text = ask(job, (0, 2), dumps, rf"(?s)view 2, 2 workers; .*{rows}.*{late}")
    first, *rest = text.splitlines()
    assert re.match(
        r"elastic job of 3 slots \(at least 2 workers\), the first at 127.0.0.1:\d+: view 2, "
        r"2 workers; ",
        first,
    )
    assert rest[0] == "slot 1 is not in view 2: its process has ended"
    assert f" {job.processes['worker 1'].pid} " not in text
    # The native job is that of view 2; the dumps of view 1 are in the same folder.
    assert "the native job of view 2:" in text and "dumps of nodes of older views are left" in text
    assert text.count("job at ") == 1, text


@pytest.mark.slow
def test_a_process_that_waits_for_a_view_has_no_node_and_says_so(start, tmp_path):
    job = start(2)
    wait_until(lambda: job.step(0) >= 10, 120, "10 steps")
    job.kill(1)
    pid = job.processes["worker 0"].pid
    said = "slot 0 waits for 2 members or more: there are 1"

    def asked():
        done = ask_now(tmp_path / "dumps")
        assert done.returncode == 0, done.stderr
        waits = re.search(rf"\n +0 +0 +{pid} on .* the next view \(\d", done.stdout)
        return said in done.stdout and waits and done

    done = wait_until(asked, 30, f"{said}, and that its worker waits for the next view")
    assert "of slot 1 there is no dump" in done.stdout


@pytest.mark.slow
def test_who_is_suspected_by_whom(start, tmp_path):
    # One of two cannot continue without the other, which is silent.
    job = start(2, heartbeat_ms=2000)
    wait_until(lambda: job.step(0) >= 10, 120, "10 steps")
    job.kill(1, signal.SIGSTOP)
    suspected = r"\nslot 1 is suspected by slot 0, which has not heard it for ([2-9]|\d\d+)\.\d s\n"
    text = ask(job, (0,), tmp_path / "dumps", suspected)
    assert "of slot 1 there is no dump" in text
    job.kill(1, signal.SIGCONT)


@pytest.mark.slow
def test_a_process_whose_interpreter_is_held_says_so_too(start, tmp_path):
    job = start(2, env={"LATE": "1 1", "HOLDS": "1"})
    job.wait_for("worker 1", "late", 120)
    time.sleep(5)  # once: the signal that requests a dump wakes it
    held = r"\nthe agent of slot 1 has not run for ([3-9]|\d\d+)\.\d s: something holds Python's"
    pid = job.processes["worker 1"].pid
    ask(job, (1,), tmp_path / "dumps", rf"{held} interpreter in process {pid} on ")


def dump(folder, slot, members, time_=0.0, age=0.1, **status):
    """Write an agent's dump, of a member of view 3 that has completed step 7."""
    seats = [{"id": f"id {s}", "slot": s, "address": f"h:{s}"} for s in members]
    known = {
        "id": f"id {slot}",
        "slot": slot,
        "agents": [f"h:{s}" for s in range(4)],
        "min_members": 2,
        "member": True,
        "joining": False,
        "epoch": 3,
        "entered": 3,
        "boundary": -1,
        "completed": 7,
        "members": seats,
        "joined": [],
        "departed": [],
        "dead": [],
        "joins": [],
        "suspects": [],
        "calls": [],
        "waits_for": "",
    }
    values = {
        "format": "hipress debug",
        "version": 1,
        "reason": "",
        "time": time.time() + time_,
        "host": "h",
        "pid": 100 + slot,
        "process_nodes": 1,
        "age": age,
        "status": {**known, **status},
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"agent.h.{100 + slot}.1.json"
    path.write_text(json.dumps(values))
    return path, values


def said(folder):
    done = hipress("debug", folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sentences(tmp_path):
    coming = {"about": "here/2", "epoch": 3, "rank": 2, "seconds": 12.34}
    silent = {"id": "id 2", "slot": 2}
    dump(tmp_path, 0, (0, 1, 2), calls=[coming], suspects=[{**silent, "silent": 2.0}])
    dump(tmp_path, 1, (0, 1, 2), calls=[coming], suspects=[{**silent, "silent": 2.1}], age=9.0)
    dump(tmp_path, 2, (0, 1, 2), epoch=2, entered=2)
    dump(
        tmp_path,
        3,
        (),
        joining=True,
        epoch=0,
        entered=0,
        completed=-1,
        waits_for="it waits for the members to let it in",
    )
    lines = said(tmp_path).splitlines()
    assert ": view 3, 3 workers; 4 dumps, " in lines[0]
    assert lines[1:6] == [
        "slot 2 is suspected by slots 0 and 1: they have not heard it for 2.1 s",
        "slot 2 has not heard of view 3",
        "slots 0 and 1 wait for slot 2 to come to 'here', for 12.3 s",
        "slot 3 waits for the members to let it in",
        "the agent of slot 1 has not run for 9.0 s: something holds Python's interpreter in "
        "process 101 on h",
    ]


def test_a_worker_that_joins_waits_for_the_boundary(tmp_path):
    for slot in (0, 1):
        dump(tmp_path, slot, (0, 1, 2), joined=["id 2"], boundary=9, entered=2)
    dump(tmp_path, 2, (0, 1, 2), joined=["id 2"], boundary=9, completed=-1)
    lines = said(tmp_path).splitlines()
    assert lines[1] == "slot 2 waits to join: step 9 is the boundary, and 7 is completed"
    assert re.match(r" +2 +2 +102 on h +3 *$", lines[-2] or lines[-1]), lines


def test_a_process_that_has_ended_leaves_a_dump_that_does_not_count(tmp_path):
    dump(tmp_path, 0, (0, 1))
    dump(tmp_path, 1, (0, 1))
    _, old = dump(tmp_path, 1, (0, 1, 2, 3), time_=-300, epoch=50)
    (tmp_path / "agent.h.99.1.json").write_text(json.dumps({**old, "pid": 99}))
    dump(tmp_path, 1, (0, 1))
    text = said(tmp_path)
    assert ": view 3, 2 workers; 2 dumps" in text and "99 on h" not in text


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "damage",
    [{"slot": 4}, {"members": [{"id": "id 0"}]}, {"epoch": "3"}, {"calls": [7]}, {"suspects": {}}],
)
def test_a_damaged_dump_is_one_sentence(damage, tmp_path):
    path, values = dump(tmp_path, 0, (0, 1))
    path.write_text(json.dumps({**values, "status": {**values["status"], **damage}}))
    done = hipress("debug", tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and f"{path} is a damaged dump: " in line
