"""MXNet's stores in an elastic job: unmodified scripts survive their workers' ends."""

import json
import sys

import numpy as np
import pytest

import refusals
from harness.elastic import ElasticJob
from harness.launch import Launch
from harness.processes import wait_until
from scripts import SCRIPTS

pytest.importorskip("mxnet_hipress")

#: Prints its state after each step. Slot 2's first process dies in its tenth; the other workers
#: end when its second one has taken part for 8 steps. That one would continue for longer.
PROGRAM = SCRIPTS / "mxnet_elastic_store" / "worker.py"


def states_of(job, name):
    """Return what a process has printed, step by step."""
    lines = job.output(name).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.slow
def test_a_script_goes_on_without_a_worker_and_with_its_successor():
    command = [sys.executable, "-m", "mxnet_hipress", str(PROGRAM)]
    with ElasticJob(command, 3, env={"OMP_NUM_THREADS": "1"}) as job:
        wait_until(lambda: job.step(0) >= 15, 120, "the others to go on")
        job.restart(2)
        job.wait(90)
        names = ["worker 0", "worker 1", "worker 2 again 1"]
        assert [job.processes[name].returncode for name in names] == [0, 0, 0], job.report()
        assert all("done" in job.output(name) for name in names)
        of_late = job.output("worker 2 again 1")
        printed = {name: states_of(job, name) for name in [*names, "worker 2"]}

    late = printed["worker 2 again 1"]
    end = printed["worker 0"][-1]
    assert "training is over, as another" in of_late
    # The job ended for it before its script did: it has the final weights of the other workers.
    assert late[-1]["steps"] == late[-2]["steps"] == end["steps"]
    assert [late[-1][key] for key in "ab"] == [end[key] for key in "ab"]

    present = {}  # by step of the job: what those that made it had after it, and their own step
    for name, states in printed.items():
        slot = int(name.split()[1])
        for before, state in zip(states[1:], states[2:]):
            if state["steps"] == before["steps"] + 1:
                present.setdefault(state["steps"], {})[slot] = state
    last = max(present)
    assert sorted(present) == list(range(1, last + 1))
    sizes = [len(present[step]) for step in sorted(present)]
    assert sizes[0] == sizes[-1] == 3 and 2 in sizes and sizes[8] == 2
    weights = {"a": np.full((5, 8), 0.0), "b": np.full((5, 8), 1.0)}  # slot 0's
    momentum = {key: np.zeros((5, 8)) for key in weights}
    for step in range(1, last + 1):
        rate = 0.1 / (1 + present[step][0]["step"] // 4)  # of who was there all the time
        gradients = [
            np.random.RandomState(1000 * slot + state["step"]).randn(5, 8)
            for slot, state in present[step].items()
        ]
        for key, factor in (("a", 1.0), ("b", -1.0)):
            momentum[key] = 0.9 * momentum[key] - rate * factor * np.mean(gradients, axis=0)
            weights[key] = weights[key] + momentum[key]
            for state in present[step].values():
                np.testing.assert_allclose(state[key], weights[key], atol=1e-4)


GLUON = SCRIPTS / "mxnet_elastic_store" / "trainer.py"


@pytest.mark.slow
def test_a_trainer_of_an_unchanged_script(tmp_path):
    launch = Launch(
        ["--elastic", "--hipress", "-n", "2", sys.executable, str(GLUON)],
        cwd=tmp_path,
        env={"OMP_NUM_THREADS": "1"},
    )
    assert launch.finish(90) == 0, launch.err
    done = [line.split("done ")[1] for line in launch.out.splitlines() if "done " in line]
    assert len(done) == 2 and done[0] == done[1], launch.out
    assert done[0].startswith("True ") and done[0].endswith(" 58")
    assert (tmp_path / "1.states").exists()


def test_the_time_to_wait_is_that_of_the_environment(monkeypatch):
    from mxnet.base import MXNetError

    from mxnet_hipress.elastic_store import ElasticStore

    def timeout():
        store = ElasticStore("dist_sync")
        store._end.leave()
        return store._state.timeout

    monkeypatch.setenv("HIPRESS_ELASTIC_AGENTS", "127.0.0.1:1,127.0.0.1:2")
    monkeypatch.setenv("HIPRESS_ELASTIC_SLOT", "0")
    monkeypatch.setenv("HIPRESS_SECRET", "0" * 32)
    assert timeout() == 300
    monkeypatch.setenv("HIPRESS_TIMEOUT", "7")
    assert timeout() == 7
    monkeypatch.setenv("HIPRESS_TIMEOUT", "7.5")
    with pytest.raises(MXNetError, match="HIPRESS_TIMEOUT is '7.5'; it takes a number from 1 to"):
        timeout()


@pytest.mark.slow
def test_what_cannot_be_is_refused_in_a_sentence():
    script = SCRIPTS / "mxnet_elastic_store" / "refused.py"
    variables = {
        "HIPRESS_ELASTIC_AGENTS": "127.0.0.1:1,127.0.0.1:2",
        "HIPRESS_ELASTIC_SLOT": "0",
        "HIPRESS_SECRET": "0" * 32,
    }
    expected = (
        "no asynchronous store",
        "has no store 'dist_sync'",
        "key 3 is row_sparse",
        "has dtype float64",
        "init of key 3 takes one value",
        "init it first",
        "comes after the first push",
        "call set_optimizer before",
        "before key 2, which every step",
        "leave warmup_steps out",
        'unknown compression type "twobit"',
        "pull is for kvstores",
        "this store has no optimizer",
        "no row_sparse keys",
        "cannot push shape (5,)",
        "needs a job whose workers stay",
    )
    refusals.check(script, expected, variables)
