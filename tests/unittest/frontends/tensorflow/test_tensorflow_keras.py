"""Behavior of Keras with an optimizer that averages gradients, in a job of one worker."""

import subprocess
import sys

import pytest

from harness.processes import base_environment
from scripts import SCRIPTS

pytest.importorskip("tensorflow")


def run(script, *args, **env):
    done = subprocess.run(
        [sys.executable, str(script), *map(str, args)],
        env=base_environment({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", **env}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_registered_optimizer_is_saved_as_what_it_is(tmp_path):
    """A registered optimizer is saved and loaded with its own class.

    Cost: One process imports TensorFlow without being forked.
    """
    run(SCRIPTS / "tensorflow_keras" / "saved.py", tmp_path / "model.keras")


@pytest.mark.slow
def test_gradients_that_do_not_fit_the_variables_are_refused():
    out = run(SCRIPTS / "tensorflow_keras" / "refused.py")
    assert out.count("refused:") == 2


def test_figures_of_any_name_and_vectors_are_no_trouble(tmp_path):
    out = run(
        SCRIPTS / "tensorflow_keras" / "journal.py",
        HIPRESS_ELASTIC_LOG=str(tmp_path),
    )
    (line,) = (tmp_path / "worker-0.jsonl").read_text().splitlines()
    assert '"loss": 1.0' in line and '"rank": 1' in line and '"event": "step"' in line, out
    assert "f1" not in line


@pytest.mark.slow
def test_an_optimizer_that_is_not_built_yet_trains_in_a_function():
    """An optimizer that is not built yet trains in a function: its slots are created in the first
    trace, and must not wait for averages."""
    run(SCRIPTS / "tensorflow_keras" / "unbuilt.py")


@pytest.mark.slow
def test_a_copy_by_its_config_is_plain_and_can_be_made_distributed():
    run(SCRIPTS / "tensorflow_keras" / "copied.py")


@pytest.mark.slow
def test_variables_with_the_same_path_are_refused_where_workers_know_them_by_it():
    out = run(SCRIPTS / "tensorflow_keras" / "same_path.py")
    assert out.count("have the path 'fc/kernel': give their layers different names") == 2, out
