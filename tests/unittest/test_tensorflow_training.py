"""hipress.tensorflow: jobs of several workers, in eager mode, in tf.function and in Keras's fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from harness import ROOT
from harness.cluster import Cluster, run_cluster, worker_outputs
from harness.launch import run
from harness.marks import needs_tensorflow
from harness.processes import base_environment

# Importing TensorFlow and Keras takes each worker some seconds of processor time.
pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}

HEAD = """
import hipress.tensorflow as hvd
import hashlib
import keras
import numpy as np
import tensorflow as tf

rank, size = hvd.rank(), hvd.size()

def refused(sentence, call, errors=ValueError):
    try:
        call()
    except errors as error:
        assert sentence in str(error), f"{sentence!r} is not in {error}"
    else:
        raise AssertionError(f"not refused: {sentence}")

def print_bits(variables):
    print("bits", hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in variables)).hexdigest())
"""


def job(body: str, workers: int = 2, topology: str = "ps") -> list[str]:
    """The workers' outputs."""
    results = run_cluster(
        HEAD + body, workers, 1 if topology == "ps" else 0,
        timeout=240, env={**QUIET, "HIPRESS_TOPOLOGY": topology, "HIPRESS_START_TIMEOUT": "200"},
    )  # fmt: skip
    return worker_outputs(results)


def same_bits(outputs: list[str]) -> None:
    found = [re.findall(r"bits (\w+)", output) for output in outputs]
    assert found[0] and all(bits == found[0] for bits in found), outputs


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_uncompressed_training_is_that_of_one_process(topology):
    same_bits(job("""
def make_model(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(300, "tanh"),
                             keras.layers.Dense(1)])

random = np.random.default_rng(0)
x = random.normal(size=(96, 8)).astype(np.float32)
y = x.sum(1, keepdims=True) / 3
alone, together = make_model(0), make_model(rank)
alone.compile(keras.optimizers.SGD(0.002, momentum=0.9), "mse", jit_compile=False)
# One process sees the workers' batches side by side.
order = np.arange(96).reshape(16, 2, 3)  # steps, workers, examples
alone.fit(x, y, 6, epochs=3, shuffle=False, verbose=0)

optimizer = keras.optimizers.SGD(0.002, momentum=0.9)
assert hvd.DistributedOptimizer(optimizer) is optimizer
together.compile(optimizer, "mse", jit_compile=False)
hvd.broadcast_variables(together.variables)
mine = order[:, rank].reshape(-1)
history = together.fit(x[mine], y[mine], 3, epochs=3, shuffle=False, verbose=0).history["loss"]
assert history[-1] < 0.8 * history[0], history
for one, other in zip(alone.get_weights(), together.get_weights()):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
print_bits(together.variables)

if rank == 0:
    together.save("model.keras")
    loaded = keras.models.load_model("model.keras").optimizer
    assert type(loaded) is keras.optimizers.SGD and loaded.momentum == 0.9, type(loaded)
    assert int(loaded.iterations) == 48
""", topology=topology))  # fmt: skip


@pytest.mark.slow
def test_compressed_averages_are_those_of_the_codec_with_its_residuals():
    job("""
import hipress

shapes, steps = [(40, 30), (2000,), (5,), ()], 4
compression = {"type": "onebit", "min_size": 100}

def gradients(step, worker):
    random = np.random.default_rng([step, worker])
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]

def expected():
    workers = [[hipress.Compressor("onebit") for _ in shapes] for _ in range(size)]
    servers = [worker.for_sum_of(size) for worker in workers[0]]
    for step in range(steps):
        given, averages = [gradients(step, worker) for worker in range(size)], []
        for i, shape in enumerate(shapes):
            mine = [given[worker][i] for worker in range(size)]
            if mine[0].size < 100:  # min_size: not compressed
                averages.append(np.sum(mine, 0) / np.float32(size))
                continue
            payloads = [workers[w][i].encode(mine[w]) for w in range(size)]
            total = workers[0][i].decode_sum(payloads, shape)
            averages.append(servers[i].decode(servers[i].encode(total), shape) / np.float32(size))
        yield averages

def step_of(variables):
    def step(*given):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(v * g) for v, g in zip(variables, given)])
        tape = hvd.DistributedGradientTape(tape, compression)
        return tape.gradient(loss, {"all": list(variables)})["all"]
    return step

eager, graph = ([tf.Variable(tf.zeros(shape)) for shape in shapes] for _ in range(2))
ways = [step_of(eager), tf.function(step_of(graph))]
for step, averages in enumerate(expected()):
    for way in ways:
        found = way(*map(tf.constant, gradients(step, rank)))
        assert [g.shape for g in found] == shapes
        for one, other in zip(found, averages):
            assert one.numpy().tobytes() == np.asarray(other).tobytes(), (step, one.shape)
assert [g.shape for g in ways[1].get_concrete_function(
    *[tf.TensorSpec(None)] * 4).structured_outputs] == shapes
""")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ps", "tree"])
def test_broadcast_keeps_every_bit_of_every_dtype(topology):
    outputs = job("""
def variables(worker):
    odd = np.array([-0.0, np.nan, np.inf, 1e-42, worker], np.float32)
    random = np.random.default_rng(worker)
    values = [odd, np.int64(-worker - 2), np.array([worker == 0, True]),
              random.normal(size=(7, 300)), tf.cast([1.5, -0.0, worker], tf.bfloat16),
              random.integers(0, 2**32, 40_000, dtype=np.uint32)]
    return [tf.Variable(value) for value in values] + [keras.Variable(random.normal(size=3))]

mine = variables(rank)
hvd.broadcast_variables(mine, root_rank=0)
for one, other in zip(mine, variables(0)):
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), other
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hvd.broadcast_variables([])
assert "no variables to broadcast" in str(caught[0].message)
refused("root_rank must be 0, not 1", lambda: hvd.broadcast_variables(mine, root_rank=1))
print_bits(mine)
""", workers=3, topology=topology)  # fmt: skip
    same_bits(outputs)


@pytest.mark.slow
def test_kinds_of_gradients():
    job("""
def gradients(*variables, dense=False, op="average", **more):
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.cast(tf.reduce_sum(tf.gather(v, [1, 1]) if name == "sparse" else v),
                                 tf.float32) * (rank + 1) for name, v in more.items()])
    tape = hvd.DistributedGradientTape(tape, op=op, sparse_as_dense=dense)
    return tape.gradient(loss, [*variables, *more.values()])

half, unused = tf.Variable(tf.ones(3, tf.float16)), tf.Variable(1.0)
table, wide = tf.Variable(tf.ones([4, 2])), tf.Variable(tf.ones(2, tf.float64))
nothing, average = gradients(unused, half=half)
assert nothing is None and average.dtype == tf.float16 and (average.numpy() == 1.5).all()
(total,) = gradients(op="sum", half=half)
assert (total.numpy() == 3).all()
refused(f"the gradient of {table.name} is sparse", lambda: gradients(sparse=table))
refused("must be float32 or float16, not float64", lambda: gradients(wide=wide))
(rows,) = gradients(dense=True, sparse=table)
assert rows.numpy().tolist() == [[0, 0], [3, 3], [0, 0], [0, 0]]
refused("a job has one compression", lambda: hvd.DistributedGradientTape(None, "onebit"))
refused("op must be 'average' or 'sum'", lambda: hvd.DistributedGradientTape(None, op="max"))
constant = tf.constant(1.0)
with tf.GradientTape() as tape:
    tape.watch(constant)
    loss = constant * 2
tape = hvd.DistributedGradientTape(tape)
refused("averaged by variable, and a EagerTensor is none", lambda: tape.gradient(loss, constant))

optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD())
refused("averages gradients already", lambda: hvd.DistributedOptimizer(optimizer))
refused("must be one of Keras 3's, not a str", lambda: hvd.DistributedOptimizer("sgd"))
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer, "mse", jit_compile=True)
refused("jit_compile=False", lambda: model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0))
hvd.shutdown()
refused("the key-value store has been closed", lambda: gradients(half=half), Exception)
""")  # fmt: skip


@pytest.mark.slow
def test_what_workers_would_not_do_alike_is_refused_and_jobs_go_on():
    job("""
import copy

def gradients(used, sources):
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        assert isinstance(tape, hvd.DistributedGradientTape)
        loss = tf.add_n([tf.reduce_sum(v) * (rank + 1.0) for v in used])
    for one in tape, copy.copy(tape):
        refused("Jacobians are not averaged", lambda: one.jacobian(loss, sources))
        refused("Jacobians are not averaged", lambda: one.batch_jacobian(loss, sources[0]))
        assert one.watched_variables() == tuple(used)
    return copy.copy(tape).gradient(loss, sources)

# All have the name Variable:0. Each worker lacks another gradient; then one lacks the only one.
three = [tf.Variable(tf.zeros(2)) for _ in range(3)]
for lacking in (rank, 2 if rank else None):
    used = [v for i, v in enumerate(three) if i != lacking]
    refused(f"None for: {2 if lacking is None else lacking} Variable:0",
            lambda: gradients(used, three), hvd.HipressError)
alone = tf.Variable(0.0)
refused("None for: 0 Variable:0", lambda: gradients([[alone], three][rank], [alone]),
        hvd.HipressError)
assert gradients(three, [alone, tf.constant(1.0)]) == [None, None]
nothing, one, other = gradients(three[:2], [three[2], *three[:2]])
assert nothing is None and one.numpy().tolist() == other.numpy().tolist() == [1.5, 1.5]
assert all(g.numpy().tolist() == [1.5, 1.5] for g in gradients(three, three))
many = [tf.Variable(0.0, name="x" * 40) for _ in range(300)]  # names have a longest length
assert gradients(many[:1], many)[0].numpy() == 1.5

empty = tf.Variable(tf.zeros([3, 0]))
mixed, none = gradients([three[0], empty], [three[0], empty]), gradients([empty], [empty])
assert [g.shape for g in mixed] == [2, [3, 0]] and mixed[0].numpy().tolist() == [1.5, 1.5]
assert none[0].shape == [3, 0]

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(three[0])
    return hvd.DistributedGradientTape(tape).gradient(loss, three[0])

@tf.function
def sometimes(wanted):
    return tf.cond(wanted, step, lambda: tf.zeros(2))

refused("inside a tf.cond, to which one worker alone may not come",
        lambda: sometimes(tf.constant(True)))
assert step().numpy().tolist() == [1, 1]

# Around steps of Keras's own there is one.
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD())
model.compile(optimizer, "mse", jit_compile=False, steps_per_execution=2)
model.fit(np.ones((6, 2)), np.ones((6, 1)), 2, verbose=0)
assert int(optimizer.iterations) == 3
""")  # fmt: skip


@pytest.mark.slow
def test_a_job_of_one_checks_its_compression(tmp_path):
    (tmp_path / "plan").write_text("dense/kernel,y,0\n")
    body = f"""
def tape(**compression):
    return lambda: hvd.DistributedGradientTape(tf.GradientTape(), compression)

def wrong(sentence, **compression):
    refused(sentence, tape(**compression), hvd.HipressError)

wrong("onebit", type="nobit")
wrong("has no parameter", type="onebit", ratio=0.1)
wrong("ratio", type="dgc", ratio=7)
wrong("min_size", type="onebit", min_size=-1)
wrong("colocated, ring", type="onebit", topology="circle")
wrong("pull", type="onebit", pull="sometimes")
wrong("number of partitions", type="onebit", plan={str(tmp_path / "plan")!r})
wrong("plan", type="onebit", plan="nowhere")
tape(type="dgc", ratio=0.01, min_size=10, topology="PS", pull="same", plan="auto")()
refused("a job has one compression", tape(type="onebit"))
print("all checked")
"""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body], env=base_environment(QUIET),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "all checked" in done.stdout, done.stdout + done.stderr


def test_a_dead_worker_is_named():
    body = """
import os
variable = tf.Variable(tf.zeros(10))

@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable)
    return hvd.DistributedGradientTape(tape).gradient(loss, variable)

for i in range(4):
    if i == 2 and rank == 1:
        os._exit(3)
    step()
"""
    with Cluster(HEAD + body, 2, 1, env=QUIET) as cluster:
        results = {result.name: result for result in cluster.wait(240)}
    assert results["worker 1"].returncode == 3
    assert results["worker 0"].returncode == 1
    assert re.search(r"HipressError: .*worker 1", results["worker 0"].output), results


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "onebit"])
def test_the_example_learns_digits(compression):
    pytest.importorskip("sklearn")
    script = [sys.executable, str(ROOT / "examples/tensorflow/digits.py")]
    options = ["-n", "2", "-s", "1", "--timeout", "240", "--env", "TF_CPP_MIN_LOG_LEVEL=2"]
    arguments = [*options, *script, "--compression", compression, "--epochs", "3"]
    launch = run(arguments, seconds=250.0)
    assert launch.process.returncode == 0, launch.out + launch.err
    weights = re.findall(r"worker \d: weights (\w+)", launch.out)
    assert len(weights) == 2 and len(set(weights)) == 1, launch.out
    lines = [json.loads(text) for text in re.findall(r"\{.*\}", launch.out)]
    assert len(lines) == 3 and lines[-1]["loss"] < lines[0]["loss"] / 2, lines
    assert lines[-1]["test_accuracy"] > 0.9, lines
    ratio = lines[-1]["pushed_raw_bytes"] / lines[-1]["pushed_bytes"]
    assert ratio > 10 if compression == "onebit" else 0.9 < ratio <= 1, lines


@pytest.mark.slow
def test_a_job_that_loads_its_states_goes_on_with_the_same_bits(tmp_path):
    body = """
import sys
first, last = FIRST, LAST
path = "FOLDER"
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(3)])
optimizer = hvd.DistributedOptimizer(
    keras.optimizers.SGD(0.1, momentum=0.9), {"type": "terngrad", "min_size": 0})
optimizer.build(model.trainable_variables)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
if first:
    checkpoint.restore(f"{path}/model").expect_partial()
    hvd.load_states(f"{path}/states")
    refused("there is no such file", lambda: hvd.load_states(f"{path}/nothing"), hvd.HipressError)
for step in range(first, last):
    x = np.random.RandomState(100 * step + rank).normal(size=(4, 8)).astype("float32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
if not first and last < 8:
    hvd.save_states(f"{path}/states")
    if rank == 0:
        checkpoint.write(f"{path}/model")
print_bits(model.variables)
"""
    def bits(first: int, last: int) -> str:
        text = body.replace("FIRST", str(first)).replace("LAST", str(last))
        outputs = job(text.replace("FOLDER", str(tmp_path)))
        same_bits(outputs)
        return re.findall(r"bits (\w+)", outputs[0])[0]

    whole = bits(0, 8)
    assert bits(0, 4) != whole
    assert sorted(path.name for path in tmp_path.glob("states*")) == [
        "states.worker-0",
        "states.worker-1",
    ]
    assert bits(4, 8) == whole
