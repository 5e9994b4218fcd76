"""Saves or loads a trainer's states; arguments: file, and save or load."""

import sys

import mxnet as mx
from mxnet import gluon

from common import net, train

trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore="dist_sync")
if sys.argv[2] == "save":
    train(trainer, 2)
    trainer.save_states(sys.argv[1])
else:
    try:
        trainer.load_states(sys.argv[1])
        train(trainer, 3)
        print("trained", flush=True)
    except mx.base.MXNetError as error:
        print("refused:", error, flush=True)
