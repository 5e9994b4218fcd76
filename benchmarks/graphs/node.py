"""One worker of a measured job of the plain node API, which synchronizes a model's gradients.

It simulates a training step. Gradients of ``sizes`` elements become ready from the last layer to
the first, in ``backward`` seconds, of which ``compute`` gives each its share. The next forward pass
takes ``forward`` seconds and uses a layer's result when it has arrived. Computation is simulated by
sleeping, as for a GPU: it takes no core from the codecs. ``after_backward`` begins when all
gradients are ready, ``together`` pushes them in one call, and ``servers_cpu`` requests the
processor time of servers, which also run this program.

``iterations`` steps are timed alone, each from a barrier and after ``pause`` seconds. ``blocks``
times ``in_a_row`` steps are timed without one, after ``warmup`` steps and the trials of plan auto.
"""

from __future__ import annotations

import os
import time

import numpy as np

from benchmarks.common.timing import options, report, time_blocks
from hipress.runtime.node import Node


def main() -> None:
    args = options(
        compute=None,
        compression={},
        backward=0.0,
        forward=0.0,
        pause=0.0,
        after_backward=False,
        together=False,
        priority=True,
        servers_cpu=False,
        warmup=3,
        iterations=10,
        blocks=0,
        in_a_row=10,
    )
    node = Node()
    if node.role == "server":
        node.serve(lambda worker, head, body: repr(sum(os.times()[:2])).encode())
        return
    if node.role != "worker":
        node.serve()
        return
    sizes = args.sizes
    shares = np.array(args.compute or sizes, np.float64)
    shares /= shares.sum()
    node.set_gradient_compression(args.compression)
    gradients, outs = [], []
    for key, size in enumerate(sizes):
        random = np.random.default_rng([node.rank, key])
        gradients.append(random.standard_normal(size, dtype=np.float32))
        outs.append(np.zeros(size, np.float32))
        node.init_array(key, outs[key])

    def start(key: int):
        priority = -key if args.priority else 0
        return node.pushpull(key, gradients[key], outs[key], priority=priority)

    order = list(reversed(range(len(sizes))))
    group = node.group(
        order,
        [gradients[key] for key in order],
        [outs[key] for key in order],
        [-key if args.priority else 0 for key in order],
    )

    def sleep(until: float) -> float:
        pause = until - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        return until

    def step() -> None:
        if args.together:
            sleep(time.perf_counter() + args.backward)
            group.pushpull().wait(120)
            sleep(time.perf_counter() + args.forward)
            return
        waits = {}
        now = time.perf_counter()
        for key in reversed(range(len(sizes))):
            now = sleep(now + args.backward * shares[key])
            if not args.after_backward:
                waits[key] = start(key)
        if args.after_backward:
            waits = {key: start(key) for key in reversed(range(len(sizes)))}
        for key in range(len(sizes)):
            waits[key].wait(120)
            if args.forward:
                sleep(time.perf_counter() + args.forward * shares[key])

    def servers_cpu() -> float:
        """Return the seconds that servers have computed so far, which worker 0 requests for all."""
        if node.rank > 0 or not args.servers_cpu:
            return 0.0
        return sum(float(node.command(i, 0, b"cpu")) for i in range(node.num_servers))

    def rest() -> None:
        time.sleep(args.pause)
        node.barrier()

    time_blocks(step, node.barrier, args.warmup)
    while node.auto is not None and node.auto.trying:  # the same on all workers
        step()
    before, cpu, theirs = node.stats(), sum(os.times()[:2]), servers_cpu()
    alone = time_blocks(step, rest, args.iterations)
    in_a_row = time_blocks(step, node.barrier, args.blocks, args.in_a_row)
    steps = args.iterations + args.blocks * args.in_a_row
    after = node.stats()
    cpu = sum(os.times()[:2]) - cpu
    theirs = servers_cpu() - theirs
    report(
        rank=node.rank,
        seconds=alone,
        in_a_row=in_a_row,
        stats={name: (after[name] - before[name]) / steps for name in after},
        cpu=cpu / steps,
        servers_cpu=theirs / steps,
        plan=node.auto.chosen.store_params() if node.auto is not None else None,
    )
    node.barrier()
    node.stop()


if __name__ == "__main__":
    main()
