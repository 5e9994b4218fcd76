"""Optimizers on servers and elsewhere: their states in files, their learning rates, NumPy's
arrays."""

import sys

import pytest

from harness.elastic import ElasticJob
from harness.launch import run
from scripts import SCRIPTS

pytest.importorskip("mxnet_hipress")


STATES = SCRIPTS / "mxnet_resume" / "states.py"
SERVERS, RING = ["-n", "1", "-s", "1"], ["-n", "1", "-s", "0", "--topo", "ring"]
ELASTIC = ["-n", "1", "--elastic", "--max-restarts", "0"]


def launch(where, script, *args):
    """Run a script, without a change of its stores' names."""
    done = run(["--hipress", *where, sys.executable, str(script), *args])
    assert done.process.returncode == 0, done.err
    return done.out


def states(where, what, file):
    return launch(where, STATES, str(file), what)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("saved", "loaded", "sentence"),
    [
        (SERVERS, RING, "of servers: load them in a job that has 1 of them"),
        (SERVERS, ELASTIC, "of servers: load them in a job that has 1 of them"),
        (RING, SERVERS, "of a job without servers: load them in a job that has none"),
    ],
)
def test_states_of_another_kind_of_job_are_refused_by_name(tmp_path, saved, loaded, sentence):
    """States of another kind of job (with servers, without, elastic) are refused with the name of
    the kind.

    Cost: Two jobs of the launcher follow each other, whose processes import MXNet as a user's
    do.
    """
    states(saved, "save", tmp_path / "states")
    out = states(loaded, "load", tmp_path / "states")
    assert f"refused: {tmp_path / 'states'} holds the optimizer states {sentence}" in out


@pytest.mark.slow
def test_servers_states_are_resumed_with_numpys_arrays(tmp_path, monkeypatch):
    """Optimizer states of servers are saved and loaded with MXNet's NumPy arrays.

    Cost: Two jobs of the launcher follow each other, whose processes import MXNet as a user's
    do.
    """
    monkeypatch.setenv("NUMPY", "1")
    states(SERVERS, "save", tmp_path / "states")
    assert "trained" in states(SERVERS, "load", tmp_path / "states")


@pytest.mark.slow
def test_servers_heed_another_learning_rate():
    """Servers follow another learning rate: from the third of four steps on it is 0.

    Cost: The processes of a launcher's job import MXNet as a user's do.
    """
    script = SCRIPTS / "mxnet_resume" / "learning_rate.py"
    launch(["-n", "2", "-s", "2"], script)


@pytest.mark.slow
def test_another_optimizer_comes_after_what_was_pushed():
    """A new optimizer applies only to gradients that are pushed after it was set.

    Cost: The processes of a launcher's job import MXNet as a user's do.
    """
    script = SCRIPTS / "mxnet_resume" / "optimizer.py"
    launch(["-n", "2", "-s", "1"], script)


@pytest.mark.slow
def test_an_asynchronous_barrier_waits_for_pushes_with_pulls_behind_them():
    script = SCRIPTS / "mxnet_resume" / "asynchronous.py"
    launch(["-n", "2", "-s", "1"], script)


@pytest.mark.slow
def test_states_are_those_after_the_last_push_also_if_nothing_is_pulled_after_it(tmp_path):
    """Saved optimizer states include the last push, also if no pull follows it.

    Cost: The processes of a launcher's job import MXNet as a user's do.
    """
    script = SCRIPTS / "mxnet_resume" / "last_push.py"
    launch(["-n", "2", "-s", "1"], script, str(tmp_path))


@pytest.mark.slow
def test_a_process_may_fork_while_gradients_travel():
    """A process may fork while gradients travel: MXNet first waits for operations in progress."""
    script = SCRIPTS / "mxnet_resume" / "fork.py"
    launch(["-n", "2", "-s", "1", "--timeout", "60"], script)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["elastic", "rounds", "store"])
def test_elastic_jobs_take_numpys_arrays(kind):
    """Elastic jobs accept NumPy's arrays, and copy them to the workers that do not count, at the
    beginning."""
    script = SCRIPTS / "mxnet_resume" / "elastic.py"
    with ElasticJob([sys.executable, str(script), kind], 2, env={"NUMPY": "1"}) as job:
        job.wait(90, succeed=True)
        assert all("trained" in job.output(f"worker {slot}") for slot in range(2))


def test_parameters_with_the_same_name_are_refused_where_workers_know_them_by_it():
    from mxnet import gluon, init

    from mxnet_hipress import elastic

    nets = [gluon.nn.Dense(3, in_units=2, prefix="fc_") for _ in range(2)]
    parameters = [p for net in nets for p in net.collect_params().values()]
    for net in nets:
        net.initialize(init.One())
    trainer = gluon.Trainer(parameters, "sgd", kvstore=None)
    with pytest.raises(ValueError, match="two parameters are called 'fc_weight'"):
        elastic.State(parameters, trainer)
