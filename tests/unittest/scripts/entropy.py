"""Trains by each codec and prints digests and bytes.

The argument has the codecs, as JSON; ENTROPY=1 adds an entropy stage.
"""

import hashlib
import json
import os
import sys

import numpy as np

from hipress.runtime.node import Node

node = Node()
codecs = json.loads(sys.argv[1])
entropy, n, digests, sent = os.environ["ENTROPY"] == "1", 30_000, [], []
for key, (type, params) in enumerate(codecs.items()):
    node.init_array(key, np.zeros(n, np.float32))
    node.set_gradient_compression({"type": type, **params, "entropy": entropy, "min_size": 0})
    before = node.stats()["pushed_bytes"]
    sha = hashlib.sha1()
    for step in range(2):
        x = np.random.default_rng([step, node.rank]).standard_t(4, n).astype(np.float32)
        out = np.zeros(n, np.float32)
        node.pushpull(key, x, out).wait(30)
        sha.update(out.tobytes())
    assert np.isfinite(out).all() and out.any()
    digests.append(sha.hexdigest())
    sent.append(node.stats()["pushed_bytes"] - before)
node.barrier()
node.stop()
print("found", *digests, *sent)
