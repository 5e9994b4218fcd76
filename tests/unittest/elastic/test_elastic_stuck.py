"""Hanging workers: the remaining workers continue, and the hanging one ends or comes back."""

import os
import re
import signal
import sys
import threading
import time

import pytest

import elastic_training
from harness.elastic import ElasticJob
from harness.launch import launched
from harness.launch_elastic import arguments
from harness.processes import Processes, base_environment, wait_until
from hipress.elastic.training import journal
from hipress.elastic.training.hang_watch import EXIT_STATUS, Watch
from scripts import SCRIPTS

pytest.importorskip("torch")


@pytest.fixture
def job():
    """Start a job in which a slot's worker stops in view 1, or in the given one."""
    jobs = []

    def start(slot, workers=3, steps=100_000, **env):
        env = {"LATE": f"{slot} 1", "TIMEOUT": "6", **env}
        command = elastic_training.command(steps)
        jobs.append(ElasticJob(command, workers, min_workers=1, env=env))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


def sizes(job, slot):
    """Return the numbers of workers with which a slot's worker has made its last steps."""
    return [event["size"] for event in job.journal(slot) if event["event"] == "step"][-1:]


@pytest.mark.slow
@pytest.mark.parametrize(("slot", "workers"), [(1, 3), (0, 3), (0, 2)])
def test_the_others_go_on_and_its_successor_joins(job, slot, workers):
    """Workers continue without one that hangs; it prints where it hung and ends, and its
    successor joins.

    Cost: The remaining workers wait for the hanging one for 6 s, and it has 3 s to come back.
    """
    with job(slot, workers) as running:
        others = [each for each in range(workers) if each != slot]
        wait_until(
            lambda: all(sizes(running, each) == [workers - 1] for each in others), 60, "steps"
        )
        first = running.processes[f"worker {slot}"]
        wait_until(lambda: first.poll() is not None, 120, "its end")
        assert first.returncode == EXIT_STATUS
        told = running.output(f"worker {slot}")
        assert "the other workers have waited 6 s for it" in told
        assert "time.sleep(seconds)" in told  # where it was
        assert "this worker still hangs after 3 s: its process ends" in told
        (gone,) = [e for e in running.journal(others[0]) if e["event"] == "gone"]
        assert gone["gone"] == slot and gone["residual_written_off"] > 0
        running.restart(slot)
        wait_until(
            lambda: all(sizes(running, each) == [workers] for each in range(workers)),
            60,
            "steps",
        )


@pytest.mark.slow
def test_so_they_do_if_it_holds_the_interpreters_lock(job):
    """Workers continue without one that holds the interpreter's lock, and it ends.

    Cost: The remaining workers wait for the hanging one for 6 s, and it has 3 s to come back.
    """
    with job(1, HOLDS="1") as running:
        wait_until(lambda: all(sizes(running, each) == [2] for each in [0, 2]), 120, "steps")
        first = running.processes["worker 1"]
        wait_until(lambda: first.poll() is not None, 120, "its end")
        assert first.returncode == EXIT_STATUS
        told = running.output("worker 1")
        assert "no thread of Python has run in this worker for 10 s" in told
        assert re.search(r'File ".*/elastic_training.py", line \d+ in train', told)  # where it was
        running.restart(1)
        wait_until(lambda: all(sizes(running, each) == [3] for each in range(3)), 120, "steps")


@pytest.mark.slow
def test_time_in_which_a_process_is_stopped_does_not_count():
    script = SCRIPTS / "elastic_stuck.py"
    with Processes() as job:
        job.start("held", [sys.executable, str(script)], base_environment())
        job.wait_for("held", "ready")
        job.signal("held", signal.SIGSTOP)
        time.sleep(6)
        job.signal("held", signal.SIGCONT)
        time.sleep(0.5)
        assert job.running() == ["held"]
        assert job.wait(30)[0].returncode == 75
        assert "the last words" in job.output("held")


@pytest.mark.slow
def test_who_was_only_slow_joins_again(job):
    """A worker that was slow joins again with the same process.

    Cost: The remaining workers wait for it for 4 s; then it joins and copies their state.
    """
    with job(2, TIMEOUT="4", UNTIL_EXPELLED="1") as running:
        wait_until(lambda: sizes(running, 0) == [2], 120, "two to go on")
        running.wait_for("worker 2", "the other workers have waited 4 s for it; it joins again")
        wait_until(lambda: all(sizes(running, each) == [3] for each in range(3)), 120, "steps")
        assert running.processes["worker 2"].poll() is None


@pytest.mark.slow
def test_a_successor_that_comes_at_the_end_ends_well(job):
    """A successor that comes at the end succeeds: training has ended, so it has no trained model,
    but the job has succeeded."""
    env = {"LATE": "0 2", "AT": "60", "JOINER": "1", "SECONDS": "50", "TIMEOUT": "60"}
    with job(0, steps=60, DIES="2", **env) as running:
        running.wait_for("worker 0", "late")
        running.restart(2)
        running.wait(120)
        for slot in range(3):
            assert running.processes[running.present(slot)].returncode == 0, running.report()
        restarted = running.output("worker 2 again 1")
        assert "the other workers have reached the end of training" in restarted
        assert "trained to step 60" not in restarted
        assert "trained to step 60" in running.output("worker 0")


@pytest.mark.slow
def test_the_launcher_does_not_take_its_end_for_that_of_training(tmp_path):
    """A worker that comes at the end of training ends well, and the launcher waits for the
    workers that save.

    Cost: They save for 7 s, longer than the launcher waits after a worker that has finished
    training, 3 s.
    """
    command = elastic_training.command(60)
    late = {"LATE": "0 2", "AT": "60", "JOINER": "1", "SECONDS": "50"}
    env = base_environment({"DIES": "2", **late, "SAVE": "7"})
    options = ["--min-workers", "2", "--finish-timeout", "3"]
    with launched(arguments(3, *options, *command), env=env, cwd=tmp_path) as launch:
        assert launch.finish(150.0) == 0, launch.err
        launch.gone(5.0)
    assert "[worker 2] hipress: the other workers have reached the end of training" in launch.err
    assert launch.out.count("trained to step 60") == 2


@pytest.mark.slow
def test_torchrun_alone_is_not_held_up(tmp_path):
    """torchrun waits for all ranks; a hanging rank ends without a failure, so torchrun does not
    restart all.

    Cost: The other rank waits for the hanging one until the timeout, 6 s; then its time to
    come back passes.
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = elastic_training.command(60)[1:]
    env = base_environment({"LATE": "1 1", "TIMEOUT": "6"})
    with Processes() as job:
        job.start("torchrun", [*torchrun, *command], env)
        job.wait(150, succeed=True)
        output = job.output("torchrun")
    assert output.count("trained to step 60") == 1 and "its process ends, with the job" in output


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("comes_back", [True, False])
def test_what_it_writes_to_may_hang_too(monkeypatch, comes_back):
    ended = []

    def end(status):
        ended.append(status)
        watch._back.set()

    monkeypatch.setattr(journal, "tell", lambda *_: time.sleep(30))
    monkeypatch.setattr(os, "_exit", end)
    watch = Watch(0.1)
    began = time.monotonic()
    watch.begin("a test")
    watch.begin("a test")
    assert time.monotonic() - began < 1
    if comes_back:
        watch.end()
    for thread in threading.enumerate():
        if thread.name == "hipress-hang":
            thread.join(10)
    assert ended == ([] if comes_back else [EXIT_STATUS])
