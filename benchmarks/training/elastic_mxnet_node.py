"""One worker of elastic.py under MXNet: a Gluon script for elastic and ordinary jobs.

Its optimizer runs in the key-value store. Each step ends when its loss is known, as in a script
that reads it. The weights may still be in transit then.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle, islice

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from benchmarks.common.timing import options, report
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "digits"))
from train import build_network, load_digits

WARM_UP = 5
"""Number of first steps, in which an elastic store learns its keys and joins the job."""


def main() -> None:
    args = options(type="onebit", steps=20, batch_size=16, hidden=2048)
    kv = mx.kv.create("dist_sync")
    np.random.seed(0)
    mx.random.seed(0)
    (images, labels), _ = load_digits(kv.rank, kv.num_workers)
    starts = range(0, len(images) - args.batch_size + 1, args.batch_size)
    batches = [
        [mx.nd.array(each[start : start + args.batch_size]) for each in (images, labels)]
        for start in starts
    ]
    net = build_network(args.hidden)
    net.initialize(mx.init.MSRAPrelu(slope=0))
    net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    compression = None if args.type == "none" else {"type": args.type, "min_size": 1024}
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        {"learning_rate": 0.01, "momentum": 0.9},
        kvstore=kv,
        compression_params=compression,
        update_on_kvstore=True,
    )
    times = []
    for x, y in islice(cycle(batches), args.steps + WARM_UP):
        times.append((time.perf_counter(), time.process_time()))
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(args.batch_size * kv.num_workers)
        loss.asnumpy()
    times.append((time.perf_counter(), time.process_time()))
    seconds, processor = np.diff(np.array(times), axis=0).T.tolist()
    report(seconds=seconds[WARM_UP:], processor=processor[WARM_UP:])


if __name__ == "__main__":
    main()
