"""The same training in one process: prints the digest of the weights after each step."""

import json
import sys

import numpy as np
import worker as train

from hipress import Compressor
from hipress.elastic.training.session import digest

views, last = json.loads(sys.argv[1])
net, trainer, state = train.parts(None)
names = list(state.sizes())
left, digests = {}, {}
for (begin, slots), (end, _) in zip(views, [*views[1:], (last, [])]):
    size = len(slots)
    codecs, shared, plain = {}, {}, Compressor("none")
    for name in names:
        n = state.sizes()[name][0]
        kind = "onebit" if n >= 256 else "none"
        shared[name] = Compressor(kind).for_sum_of(size)
        for slot in slots:
            codecs[slot, name] = Compressor(kind)
            if kind == "onebit":
                codecs[slot, name].residual = left.get((slot, name), np.zeros(n, np.float32))
    for step in range(begin, end):
        payloads = {name: [] for name in names}
        for rank, slot in enumerate(slots):
            train.backward(net, step, rank, size)
            for name in names:
                gradient = state._trained[name].grad().asnumpy().reshape(-1)
                codec = plain if step < train.WARM_UP else codecs[slot, name]
                payloads[name].append(codec.encode(gradient))
        for name in names:
            grad = state._trained[name].grad()
            codec = plain if step < train.WARM_UP else shared[name]
            total = codec.decode_sum(payloads[name], grad.size)
            grad[:] = codec.decode(codec.encode(total), grad.shape)
        trainer.update(train.BATCH)
        digests[step + 1] = digest(state.weights())
    # The owner of a sum also has its residual, in units of a gradient.
    left = {key: codec.residual for key, codec in codecs.items() if codec.type == "onebit"}
    for at, name in enumerate(names):
        if shared[name].type == "onebit" and shared[name].residual is not None:
            left[slots[at % size], name] = left[slots[at % size], name] + shared[name].residual
print(json.dumps(digests))
