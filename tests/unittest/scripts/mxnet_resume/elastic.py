"""Elastic training with NumPy's arrays; argument: elastic, rounds or store."""

import sys

from mxnet import gluon

import mxnet_hipress
import mxnet_hipress.elastic as elastic
from common import net, train, weight

if sys.argv[1] == "store":
    mxnet_hipress.install()
    train(
        gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore="dist_sync"), 6
    )
else:
    rounds = {"sync_every": 2, "outer_optimizer": "nag"} if sys.argv[1] == "rounds" else {}
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore=None)
    state = elastic.State(net, trainer, {"type": "onebit", "min_size": 0}, timeout=60, **rounds)

    @elastic.run
    def steps(state):
        while state.step < 4:
            train(state.trainer, 1)
            state.commit()

    steps(state)
    state.load_state_dict(state.state_dict())
assert weight() != [1.0, 1.0]
print("trained", flush=True)
