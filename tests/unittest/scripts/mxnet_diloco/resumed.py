"""Trains from step FIRST with files in a folder; arguments: options, folder, FIRST."""

import sys

import numpy as np
from mxnet.base import MXNetError

from common import H, digest, train, trained
from mxnet_network import network

path = sys.argv[2]
net = network()
trainer = trained(net)
rank, first = trainer.store.rank, int(sys.argv[3])
if first:
    net.load_parameters(f"{path}/weights-{rank}")
    trainer.load_states(f"{path}/states")
    try:
        trainer.load_states(f"{path}/nothing")
    except MXNetError as error:
        assert "there is no such file" in str(error)
    outer = trainer._diloco.outer.optimizer
    assert outer._updater.optimizer is outer.optimizer
    saved = np.load(f"{path}/states.diloco-{rank}", allow_pickle=False)
    with open(f"{path}/others.diloco-{rank}", "wb") as file:
        np.savez(file, **{**saved, "workers": 8})
    try:
        trainer.load_states(f"{path}/others")
    except MXNetError as error:
        assert "is of a job of 8 workers, and this one has 2" in str(error)
    else:
        raise AssertionError("another number of workers")
for step in range(first, 3 * H + 3):
    if step == 2 * H + 2 and not first:  # the first fragment has just been sent
        net.save_parameters(f"{path}/weights-{rank}")
        trainer.save_states(f"{path}/states")
    train(net, trainer, rank, step + 1)
trainer.synchronize()
print("digest", digest(net))
