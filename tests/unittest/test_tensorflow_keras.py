"""What Keras does with an optimizer that averages gradients, in a job of one worker."""

import subprocess
import sys

import pytest

from harness.processes import base_environment

pytest.importorskip("tensorflow")

HEAD = """
import keras, numpy as np, tensorflow as tf
import hipress.tensorflow as hvd

def network():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
"""


def run(body, **env):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body],
        env=base_environment({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", **env}),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_registered_optimizer_is_saved_as_what_it_is(tmp_path):
    run(f"""
@keras.saving.register_keras_serializable("mine")
class Mine(keras.optimizers.SGD):
    pass

model = network()
model.compile(hvd.DistributedOptimizer(Mine(0.1)), "mse", jit_compile=False)
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
model.save({str(tmp_path / "model.keras")!r})
loaded = keras.models.load_model({str(tmp_path / "model.keras")!r})
assert type(loaded.optimizer) is Mine, type(loaded.optimizer).__mro__
""")


@pytest.mark.slow
def test_gradients_that_do_not_fit_the_variables_are_refused():
    out = run("""
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
variable = keras.Variable([1.0, 2.0])
for prepare in (lambda: None, lambda: optimizer.build([variable])):
    prepare()
    try:
        optimizer.apply([tf.ones(2)] * (1 + optimizer.built))
    except ValueError as error:
        print("refused:", error)
optimizer.apply([tf.ones(2)])
assert abs(float(variable[0]) - 0.9) < 1e-6
""")
    assert out.count("refused:") == 2


def test_figures_of_any_name_and_vectors_are_no_trouble(tmp_path):
    out = run(
        """
import hipress.tensorflow.elastic as elastic
from hipress.elastic_training.journal import Journal
from hipress.elastic_training.session import Session
from unittest import mock

logs = {"loss": 1.0, "rank": 5.0, "event": 2.0, "f1": np.ones(3)}
committed = {}
state = mock.Mock(commit=lambda **figures: committed.update(figures))
elastic._Commit.on_train_batch_end(mock.Mock(_state=state), 0, logs)
session = mock.Mock(view=mock.Mock(epoch=4), _state=mock.Mock(step=7), size=2, rank=1,
                    _journal=Journal(0))
Session._write(session, "step", committed)
""",
        HIPRESS_ELASTIC_LOG=str(tmp_path),
    )
    (line,) = (tmp_path / "worker-0.jsonl").read_text().splitlines()
    assert '"loss": 1.0' in line and '"rank": 1' in line and '"event": "step"' in line, out
    assert "f1" not in line


@pytest.mark.slow
def test_an_optimizer_that_is_not_built_yet_trains_in_a_function():
    """Its slots are made in the first trace, and must not wait for averages."""
    run("""
model = network()
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.1))
before = [np.array(v) for v in model.trainable_variables]

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))

for _ in range(2):
    step(tf.ones((4, 2)))
assert int(optimizer.iterations) == 2
assert all(abs(np.array(v) - b).max() > 0.1 for v, b in zip(model.trainable_variables, before))
""")


@pytest.mark.slow
def test_a_copy_by_its_config_is_plain_and_can_be_made_distributed():
    run("""
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.25))
copy = type(optimizer).from_config(optimizer.get_config())
assert type(copy) is keras.optimizers.Adam and abs(float(copy.learning_rate) - 0.25) < 1e-6
model = network()
model.compile(hvd.DistributedOptimizer(copy), "mse", jit_compile=False)
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
""")


@pytest.mark.slow
def test_variables_with_the_same_path_are_refused_where_workers_know_them_by_it():
    out = run("""
import hipress.tensorflow.elastic as elastic

def tower():
    given = keras.Input((2,))
    return given, keras.Model(given, keras.layers.Dense(1, name="fc")(given))(given)

(a, left), (b, right) = tower(), tower()
model = keras.Model([a, b], keras.layers.Add()([left, right]))
for make in (lambda: elastic.State(model, keras.optimizers.SGD(0.1)),
             lambda: hvd.DiLoCo(model, 4, keras.optimizers.SGD(0.7))):
    try:
        make()
    except ValueError as error:
        print("refused:", error)
""")
    assert out.count("have the path 'fc/kernel': give their layers names of their own") == 2, out
