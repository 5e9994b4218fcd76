"""Worker 0 makes one step of a tf.function less than worker 1, which waits for it."""

import tensorflow as tf

import hipress.tensorflow as hvd
from common import await_failure, interrupt
from hipress.tensorflow.worker_job import join

variable = tf.Variable(tf.zeros(200))


@tf.function
def step():
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(variable * variable)
    return tape.gradient(loss, [variable])


step()
if hvd.rank() == 0:
    await_failure(join().node.failure)
else:
    interrupt(step)
