"""Uncompressed outer steps by NumPy with MXNet's inner steps: prints a digest after each."""

import json
import os
import sys

from mxnet import gluon

from common import assign, backward, weights
from diloco_reference import H, Reference
from hipress.elastic.training.session import digest as digest_of
from mxnet_network import network

rounds, steps = json.loads(sys.argv[1])
known = {}


def of(slot, process):
    if (slot, process) not in known:
        net = network()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, None)
        if os.path.exists("first.states"):  # as it copies what rank 0 had
            trainer.load_states("first.states")
        known[slot, process] = slot, net, trainer
    return known[slot, process]


def step_of(worker, _, step):
    slot, net, trainer = worker
    backward(net, slot, step - 1)
    trainer.step(16)


reference = Reference(
    [of(0, None)],
    step_of,
    [(0, range(6))],
    0,
    0,
    1,
    0,
    "none",
    0,
    weights=lambda worker: weights(worker[1]),
    assign=lambda worker, i, values: assign(worker[1], i, values),
)
digests = []
for number, workers in enumerate(rounds):
    reference.nets = [of(*worker) for worker in workers]
    reference.codecs = [reference.codecs[0]] * len(workers)
    for net in reference.nets:
        for i, outer in enumerate(reference.outer):
            assign(net[1], i, outer)
    last = min(steps, (number + 1) * H)
    for step in range(number * H + 1, last + 1):
        reference.advance(step)
    if last % H:  # the last outer step is shorter
        reference.pending[last] = {i: reference.mean(i) for i in range(6)}
        reference.take(last)
    _, net, trainer = reference.nets[0]
    trainer.save_states("first.states")
    named = [
        (p.name, memoryview(p.data().asnumpy()).cast("B")) for p in net.collect_params().values()
    ]
    digests.append(digest_of([*named, *named]))  # weights, and outer weights
print(json.dumps(digests))
