"""Worker 1 forks with an operation of TensorFlow's job in progress."""

import numpy as np
import tensorflow  # noqa: F401  # its threads must not hinder children

import hipress.tensorflow as hvd
from common import await_worker_1, fork_all, go_on
from hipress.tensorflow.worker_job import join

node = join().node
node.init_array(0, np.zeros(4, np.float32))
out = np.zeros(4, np.float32)
if hvd.rank() == 0:
    await_worker_1()
pending = node.pushpull(0, np.ones(4, np.float32), out)
if hvd.rank() == 1:
    fork_all()
    go_on.touch()
pending.wait(30)
print("result", out[0], flush=True)
