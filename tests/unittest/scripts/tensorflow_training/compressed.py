"""Compressed averages equal those of the codec with its residuals."""

import numpy as np
import tensorflow as tf

import hipress
import hipress.tensorflow as hvd
from common import rank, size

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
functions = [step_of(eager), tf.function(step_of(graph))]
for step, averages in enumerate(expected()):
    for function in functions:
        found = function(*map(tf.constant, gradients(step, rank)))
        assert [g.shape for g in found] == shapes
        for one, other in zip(found, averages):
            assert one.numpy().tobytes() == np.asarray(other).tobytes(), (step, one.shape)
assert [
    g.shape
    for g in functions[1].get_concrete_function(*[tf.TensorSpec(None)] * 4).structured_outputs
] == shapes
