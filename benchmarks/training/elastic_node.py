"""One worker of elastic.py: trains, elastic or not, and reports its steps."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report
from benchmarks.training.node import workload

WARM_UP = 3


def main() -> None:
    args = options(type="onebit", model="vgg", steps=20, elastic=False)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of, optimizer = workload(args, 1)
    seconds, processor = (elastic if args.elastic else plain)(args, model, loss_of, optimizer)
    report(seconds=seconds[WARM_UP:], processor=processor[WARM_UP:])
    os._exit(0)  # Gloo's threads may outlive the group; the result is printed


def plain(args: SimpleNamespace, model, loss_of, optimizer):
    from hipress.torch import DistributedOptimizer, broadcast_parameters

    dist.init_process_group("gloo")
    broadcast_parameters(model.state_dict())
    optimizer = DistributedOptimizer(optimizer, model.named_parameters(), args.type)
    times = [one_step(model, loss_of, optimizer) for _ in range(args.steps + WARM_UP)]
    dist.barrier()
    return zip(*times)


def elastic(args: SimpleNamespace, model, loss_of, optimizer):
    from hipress.torch.elastic import State, run

    times = []

    @run
    def train(state: State) -> None:
        while state.step < args.steps + WARM_UP:
            times.append(one_step(model, loss_of, state.optimizer, state.commit))

    train(State(model, optimizer, args.type))
    return zip(*times)


def one_step(model, loss_of, optimizer, commit=lambda: None) -> tuple[float, float]:
    dist.barrier()
    wall, used = time.perf_counter(), time.process_time()
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    commit()
    return time.perf_counter() - wall, time.process_time() - used


if __name__ == "__main__":
    main()
