"""A NaN or Inf on one worker reaches all and no residual; arguments: op, codec."""

import sys

import numpy as np
import tensorflow as tf

import hipress
import hipress.tensorflow as hvd
from common import rank, size

op, compression = sys.argv[1], {"type": sys.argv[2], "min_size": 100}

kinds = [((40, 30), "float32"), ((500,), "float16"), ((9, 20), "float32"), ((5,), "float32")]
# By step: in which gradient of which worker something is not finite. The third one is sparse.
bad = {
    0: {0: (0, np.inf)},
    2: {1: (1, np.nan)},
    3: {0: (2, -np.inf), 1: (0, np.nan)},
    5: {1: (3, np.inf)},
}


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
functions = [step_of(eager), tf.function(step_of(graph))]
for step, results in enumerate(expected()):
    for function in functions:
        for one, other in zip(function(*map(tf.constant, gradients(step, rank))), results):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.numpy(), other, str(step))
