"""hipress.tensorflow: a NaN or Inf in one worker's gradients reaches all, and no residual."""

from __future__ import annotations

import pytest

from harness.marks import needs_tensorflow
from test_tensorflow_training import job, same_bits

pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]


@pytest.mark.slow
@pytest.mark.parametrize("op, codec", [("average", "2bit"), ("sum", "tbq"), ("average", "1bit")])
def test_a_nan_or_inf_reaches_all_and_no_residual(op, codec):
    job(f"op, compression = {op!r}, {{'type': {codec!r}, 'min_size': 100}}" + """
import hipress

kinds = [((40, 30), "float32"), ((500,), "float16"), ((9, 20), "float32"), ((5,), "float32")]
# By step: in which gradient of which worker something is not finite. The third one is sparse.
bad = {0: {0: (0, np.inf)}, 2: {1: (1, np.nan)}, 3: {0: (2, -np.inf), 1: (0, np.nan)},
       5: {1: (3, np.inf)}}

def gradients(step, worker):
    random = np.random.default_rng([step, worker])
    found = [random.normal(size=shape).astype(dtype) for shape, dtype in kinds]
    found[2][4:] = 0
    if worker in bad.get(step, {}):
        which, value = bad[step][worker]
        found[which].flat[1] = value
    return found

def expected():
    workers = [[hipress.Compressor(compression["type"]) for _ in kinds] for _ in range(size)]
    servers = [worker.for_sum_of(size) for worker in workers[0]]
    for step in range(8):
        given, results = [gradients(step, worker) for worker in range(size)], []
        for worker in bad.get(step, ()):
            given[worker] = [np.zeros_like(each) for each in given[worker]]
        for i, (shape, dtype) in enumerate(kinds):
            mine = [given[worker][i] for worker in range(size)]
            total = np.sum(mine, 0)
            if total.size >= 100:
                payloads = [workers[w][i].encode(mine[w]) for w in range(size)]
                total = workers[0][i].decode_sum(payloads, shape)
                total = servers[i].decode(servers[i].encode(total), shape, dtype)
            results.append(total / total.dtype.type(size if op == "average" else 1))
        yield [np.full_like(result, np.nan) for result in results] if step in bad else results

def step_of(variables):
    def step(*given):
        with tf.GradientTape() as tape:
            products = [v * g for v, g in zip(variables, given)]
            products[2] = tf.gather(variables[2], range(4)) * given[2][:4]
            loss = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float32)) for each in products])
        tape = hvd.DistributedGradientTape(tape, compression, op=op, sparse_as_dense=True)
        return tape.gradient(loss, variables)
    return step

eager, graph = ([tf.Variable(tf.ones(shape, dtype)) for shape, dtype in kinds] for _ in range(2))
ways = [step_of(eager), tf.function(step_of(graph))]
for step, results in enumerate(expected()):
    for way in ways:
        for one, other in zip(way(*map(tf.constant, gradients(step, rank))), results):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.numpy(), other, str(step))
""")  # fmt: skip


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("compression, topology", [
    ("maxmin", "ps"),
    # It has no code for Inf, and nothing goes uncompressed.
    ({"type": "2bit", "threshold": 0.05, "min_size": 1}, "ring"),
])  # fmt: skip
def test_an_overflow_on_one_worker_is_skipped_by_all(compression, topology):
    same_bits(job(f"compression = {compression!r}" + """
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(600, "relu"),
                          keras.layers.Dense(1)])
scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=8.0)
optimizer = hvd.DistributedOptimizer(scaled, compression)
model.compile(optimizer, "mse", jit_compile=False)
assert model.optimizer is optimizer
hvd.broadcast_variables(model.variables)
x = np.random.default_rng(rank).normal(size=(12, 4)).astype(np.float32)
y = np.ones((12, 1), np.float32)
model.fit(x, y, 4, epochs=2, verbose=0)
before = model.get_weights()
model.fit(x[:4], np.full((4, 1), np.inf if rank == 1 else 1), 4, verbose=0)
assert all((a == b).all() for a, b in zip(before, model.get_weights()))
model.fit(x, y, 4, verbose=0)
assert any((a != b).any() for a, b in zip(before, model.get_weights()))
assert np.isfinite(model.get_weights()[0]).all()
assert float(optimizer.dynamic_scale) == 4, float(optimizer.dynamic_scale)
print_bits(model.variables)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(), compression), "mse",
              jit_compile=False)
refused("DistributedOptimizer(LossScaleOptimizer(", lambda: model.fit(x, y, verbose=0))
""", topology=topology))  # fmt: skip
