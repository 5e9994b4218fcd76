"""Elastic training: workers die, are silent, join; the remaining ones continue and lose nothing."""

import contextlib
import ipaddress
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from harness.elastic import ElasticJob
from harness.processes import base_environment, wait_until
from scripts import SCRIPTS

torch = pytest.importorskip("torch")

PROGRAM = SCRIPTS / "torch_elastic" / "worker.py"


@pytest.fixture
def job():
    """Start a job of the program above."""
    jobs = []

    def start(workers=4, steps=60, compression="onebit", seeded=False, **options):
        command = [sys.executable, str(PROGRAM), str(steps), compression, *["seeded"] * seeded]
        jobs.append(ElasticJob(command, workers, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


def steps_of(job, slots):
    """Return the digests after each step, by step, of all that made it; check that they are
    equal."""
    digests = {}
    for slot in slots:
        for event in job.journal(slot):
            if event["event"] == "step":
                digests.setdefault(event["step"], set()).add(event["digest"])
    assert all(len(found) == 1 for found in digests.values()), digests
    return digests


def end(job, slots, timeout=60):
    """Wait for the workers' end; return what they have written last."""
    job.wait(timeout)
    found = [job.output(job.present(slot)) for slot in slots]
    for slot in slots:
        assert job.processes[job.present(slot)].returncode == 0, job.report()
    return [text.strip().splitlines()[-1] for text in found]


@pytest.mark.slow
def test_without_faults(job):
    with job(steps=20) as running:
        assert len(set(end(running, range(4)))) == 1
        assert sorted(steps_of(running, range(4))) == list(range(1, 21))


def listening_addresses(pid):
    """Return the addresses on which a process listens for TCP connections."""
    mine = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # it was closed in the meantime
            mine.add(os.readlink(descriptor))
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
                digits = bytes.fromhex(fields[1].partition(":")[0])
                words = [digits[i : i + 4][::-1] for i in range(0, len(digits), 4)]
                addresses.append(ipaddress.ip_address(b"".join(words)))
    return [getattr(address, "ipv4_mapped", None) or address for address in addresses]


def test_job_on_loopback_listens_on_loopback_only(job):
    with job(workers=2, steps=100_000) as running:
        wait_until(lambda: min(running.step(slot) for slot in range(2)) > 0, 60, "two steps")
        found = {name: listening_addresses(each.pid) for name, each in running.processes.items()}
    for addresses in found.values():  # of the agent, Gloo and the engine at least
        assert len(addresses) >= 3 and all(each.is_loopback for each in addresses), found


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("compression", ["none", "onebit"])
def test_the_others_go_on_at_once(job, compression, victim):
    with job(compression=compression, env={"DIES": f"{victim}@20"}) as running:
        others = [slot for slot in range(4) if slot != victim]
        assert len(set(end(running, others))) == 1
        assert sorted(steps_of(running, range(4))) == list(range(1, 61))
        killed = running.journal(victim)[-1]["time"]
        for slot in others:
            steps = [e for e in running.journal(slot) if e["event"] == "step"]
            assert {e["size"] for e in steps} == {3, 4}
            assert min(e["time"] for e in steps if e["size"] == 3) - killed < 15


@pytest.mark.slow
def test_no_step_is_lost_or_made_twice(job):
    """No step is lost or made twice: all batches are those of undisturbed training, and so are the
    weights but for rounding."""
    with job(2, compression="none", seeded=True) as undisturbed:
        expected = end(undisturbed, range(2))[0]
    with job(4, compression="none", seeded=True, env={"DIES": "1@15 3@30"}) as running:
        found = end(running, (0, 2))
    assert found[0] == found[1]

    def numbers(text):
        return [float(part.split()[1]) for part in text.split(", ")[:3]]

    assert numbers(found[0]) == pytest.approx(numbers(expected), rel=1e-4)


def await_all(job, slots, seconds=90):
    """Wait until all of these make steps together, and check all weights until then."""

    def sizes():
        last = [[e for e in job.journal(slot) if e["event"] == "step"][-1:] for slot in slots]
        return [event["size"] for found in last for event in found]

    wait_until(lambda: sizes() == [len(slots)] * len(slots), seconds, "all to train together")
    steps_of(job, slots)


def test_two_at_once_and_their_successors_join(job):
    with job(steps=1_000_000) as running:
        wait_until(lambda: running.step(0) >= 20, 120, "20 steps")
        running.kill(1)
        running.kill(2)
        wait_until(lambda: running.step(0) >= 40, 120, "40 steps")
        running.restart(1)
        running.restart(2)
        wait_until(lambda: running.copies(1) == running.copies(2) == 2, 90, "copies")
        await_all(running, range(4))


@pytest.mark.slow
def test_a_silent_worker_is_left_behind_and_joins_again(job):
    with job(steps=1_000_000) as running:
        wait_until(lambda: running.step(0) >= 20, 120, "20 steps")
        running.kill(3, signal.SIGSTOP)
        wait_until(lambda: running.journal(0)[-1].get("size") == 3, 120, "three to go on")
        running.kill(3, signal.SIGCONT)
        running.wait_for("worker 3", "joins again")
        await_all(running, range(4))


@pytest.mark.slow
def test_too_few_workers_wait_for_a_successor(job):
    with job(2, steps=80, env={"DIES": "1@20"}) as running:
        wait_until(lambda: running.processes["worker 1"].poll() is not None, 120, "its death")
        time.sleep(1)
        assert running.step(0) < 40
        running.restart(1)
        assert len(set(end(running, range(2)))) == 1
        assert sorted(steps_of(running, range(2))) == list(range(1, 81))


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["powersgd", "dgc"])
def test_other_compressions(job, compression):
    with job(steps=60, compression=compression, env={"DIES": "1@20"}) as running:
        assert len(set(end(running, (0, 2, 3)))) == 1
        assert sorted(steps_of(running, (0, 2, 3))) == list(range(1, 61))


@pytest.mark.slow
def test_a_worker_whose_script_fails_or_differs_ends_alone(job):
    """A worker whose script fails, or has another compression, ends alone; the other workers train
    on.

    Cost: One slot's process starts three times, and imports PyTorch each time.
    """
    with job(3, steps=100_000, env={"FAILS": "2"}) as running:

        def last_line():
            process = running.processes[running.present(2)]
            wait_until(lambda: process.poll() is not None, 120, "its end")
            assert process.returncode == 1
            return running.output(running.present(2)).splitlines()[-1]

        assert last_line().endswith("RuntimeError: it cannot go on")
        running.restart(2, [*running.command[:-1], "dgc"])
        last = last_line()
        assert "ValueError: this worker" in last and "differ in compression" in last
        before = running.step(0)
        wait_until(lambda: running.step(0) > before + 10, 120, "further steps")
        # A change that is planned, to let it in, does not look like a death.
        text = running.output("worker 0")
        assert "died" not in text.partition("view 2:")[2], text


def test_views_that_are_over_leave_nothing_behind():
    script = SCRIPTS / "torch_elastic" / "views.py"
    with ElasticJob([sys.executable, str(script)], 2) as running:
        running.wait(170)
        for slot in range(2):
            steps = [e for e in running.journal(slot) if e["event"] == "step"]
            epochs = sorted({e["epoch"] for e in steps})  # some end before their first step
            assert len(epochs) >= 5
            early = [e for e in steps if e["epoch"] in epochs[1:3]]
            late = [e for e in steps if e["epoch"] in epochs[-2:]]
            for what in ("files", "threads"):
                # The least: a busy machine closes the view before a little later.
                assert min(e[what] for e in late) <= max(e[what] for e in early) + 3, steps


def test_undecided_step_counts_only_if_a_worker_has_its_result():
    """A step whose result was not copied is rolled back: the only worker that had completed it died
    before other workers had copied its weights. While a worker may have completed it, the rollback
    waits, also for one that has done so since it agreed to the view."""
    from hipress.elastic.training import view_loop
    from hipress.elastic.training.session import Session
    from hipress.elastic.training.undecided_step import CarriedState

    for copied in (True, False):
        old = mock.Mock(**{"carry_over.return_value": {}})
        job = view_loop.ElasticProcess.__new__(view_loop.ElasticProcess)
        job._carried, job._journal = CarriedState(), mock.Mock()
        job._agent = mock.Mock(id="me")
        job._state = mock.Mock(step=7, completed=7, applied=False)
        job._view = mock.Mock(step=8, behind=("me",), departed=())
        job._take_over(mock.Mock(compression=old), complete=False)
        assert not old.commit.called and not old.roll_back.called
        if copied:
            job._carried.copy({"common": {}, "encoded": {}, "choice": None})
            job._state.step = job._state.completed = 8
        job._view = mock.Mock(step=8 if copied else 7, behind=("me",), departed=())
        job._take_over(mock.Mock(compression=None), complete=False)
        view = mock.Mock(carried=job._carried, _state=job._state)
        Session.decide(view, 8)
        assert old.commit.called == copied and not old.roll_back.called
        Session.decide(view, 7)
        assert old.commit.called == copied and old.roll_back.called == (not copied)
        assert job._carried.undecided is None


@pytest.mark.slow
def test_a_script_that_was_not_launched_so():
    command = [sys.executable, str(PROGRAM), "1", "none"]
    ended = subprocess.run(
        command, env=base_environment(), capture_output=True, text=True, timeout=170
    )
    assert ended.returncode == 1
    assert "hipress launch --elastic" in ended.stderr.splitlines()[-1]


TWICE = SCRIPTS / "torch_elastic" / "second_training.py"


@pytest.mark.slow
def test_a_second_training_in_one_process_is_refused():
    with ElasticJob([sys.executable, str(TWICE)], 2) as job:
        job.wait(120, succeed=True)
        for slot in range(2):
            told = job.output(f"worker {slot}")
            assert "refused: this process takes part in elastic training already" in told
            assert "refused: this process has ended its elastic training" in told


def test_state_explains_its_compression_before_training():
    import hipress.torch.elastic as elastic

    def explained(compression):
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return str(elastic.State(model, optimizer, compression).explain())

    assert "onebit" in explained("onebit") and "as was asked for" in explained("onebit")
    assert explained("auto").startswith("auto: nothing is measured before training begins")
