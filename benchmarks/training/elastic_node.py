"""One worker of elastic.py, which makes elastic and ordinary steps in turn and reports both.

Two equal models train in one process of an elastic job, on the same processors and memory and with
the same neighbors: one as the elastic job's model, one with DistributedOptimizer on the job's
process group. The difference is the cost of being elastic.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report
from benchmarks.training.node import workload

WARM_UP = 3


def main() -> None:
    args = options(type="onebit", model="vgg", steps=20)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of, optimizer = workload(args, 1)
    torch.manual_seed(0)
    plain, loss_of_plain, other = workload(args, 1)
    from hipress.torch import DistributedOptimizer
    from hipress.torch.elastic import State, run

    times: dict[str, list[tuple[float, float]]] = {"not elastic": [], "elastic": []}

    @run
    def train(state: State) -> None:
        distributed = DistributedOptimizer(other, plain.named_parameters(), args.type)

        def elastic_step() -> None:
            optimizer = state.optimizer
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            state.commit()

        def plain_step() -> None:
            distributed.zero_grad()
            loss_of_plain(plain).backward()
            distributed.step()

        steps = {"not elastic": plain_step, "elastic": elastic_step}
        while state.step < args.steps + WARM_UP:
            turn = list(steps.items())
            for mode, step in turn if state.step % 2 else reversed(turn):
                times[mode].append(timed(step))

    train(State(model, optimizer, args.type))
    for mode, each in times.items():
        seconds, processor = zip(*each[WARM_UP:])
        report(mode=mode, seconds=seconds, processor=processor)
    os._exit(0)  # Gloo's threads may outlive the group; the result is printed


def timed(step: Callable[[], None]) -> tuple[float, float]:
    """Return elapsed seconds and this process's own, from the common start of all workers."""
    dist.barrier()
    wall, used = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - used


if __name__ == "__main__":
    main()
