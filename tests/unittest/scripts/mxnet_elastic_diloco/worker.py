"""An elastic worker with faults.

The argument has them by slot: a step in which it dies, ('nan', step) in which a weight becomes
one, or what `inject` supports.
"""

import os
import signal
import sys
import time

from mxnet import gluon

import mxnet_hipress.elastic as elastic
from common import backward, digest
from diloco_reference import H
from elastic_rounds import inject
from mxnet_network import network

compression, steps, faults, outer = eval(sys.argv[1])
slot = int(os.environ["HIPRESS_ELASTIC_SLOT"])
fault = faults.get(slot) if os.environ["HIPRESS_ELASTIC_RESTART"] == "0" else None
net = network(slot)  # slot 0's weights are everybody's
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=None)
state = elastic.State(net, trainer, compression, sync_every=H, check_every=1, timeout=60, **outer)
inject(fault, state)


@elastic.run
def train(state):
    while state.step < steps:
        if fault == state.step:
            os.kill(os.getpid(), signal.SIGKILL)
        backward(net, slot, state.step)
        state.trainer.step(16)
        if fault == ("nan", state.step):
            net[0].weight.data()[3, 3] = float("nan")
        state.commit()
        time.sleep(0.1 if steps > 1000 and state.size < 3 else 0.01)  # another one comes


train(state)
print("digest", digest(net))
