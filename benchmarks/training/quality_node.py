"""One rank of quality.py, which trains a task with each seed and reports the model's quality.

A method is "float32" (unmodified DDP), "fp16" (DDP's own hook) or "auto": ``compress(model,
optimizer=...)`` without other arguments.
"""

from __future__ import annotations

import logging
import math
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from benchmarks.common.timing import options, report
from benchmarks.training import quality_tasks

WARMUP_STEPS = 50  # steps during which the learning rate rises
CHUNK = 128  # samples per test batch


class Events(logging.Handler):
    """Handler that keeps HiPress's log of a training: the step, and the message."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.step, self.found = 0, []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append([self.step, record.getMessage()])


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    args = options()
    logging.getLogger("hipress").setLevel(logging.INFO)
    for seed in args.seeds:
        found = train(args.task, args.method, seed, args.steps, args.batch_size)
        if dist.get_rank() == 0:
            report(task=args.task, method=args.method, seed=seed, **found)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def train(name: str, method: str, seed: int, steps: int, batch_size: int) -> dict:
    """Train a task once.

    Args:
        batch_size: Samples per rank.
    """
    torch.manual_seed(seed)
    task = getattr(quality_tasks, name)()
    ddp, optimizer = DistributedDataParallel(task.model), task.optimizer
    events, compression = Events(), None
    logging.getLogger("hipress").addHandler(events)
    if method == "auto":
        compression = hipress.torch.compress(ddp, optimizer=optimizer)
    elif method == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    generator = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
    rate, losses, method_names = optimizer.param_groups[0]["lr"], [], {}
    dist.barrier()
    began, sent = time.perf_counter(), bytes_sent()
    for step in range(steps):
        events.step = step
        falling = 0.05 + 0.475 * (1 + math.cos(math.pi * step / steps))
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / WARMUP_STEPS) * falling
        optimizer.zero_grad()
        loss = loss_of(ddp, task.batch(batch_size, generator))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if compression is not None:
            method_name = next((row.method for row in compression.explain().rows if row.chosen), "")
            method_names[method_name] = method_names.get(method_name, 0) + 1
    dist.barrier()
    seconds = time.perf_counter() - began
    sent = torch.tensor(float(bytes_sent() - sent))
    dist.all_reduce(sent)
    logging.getLogger("hipress").removeHandler(events)
    found = {
        "parameters": sum(p.numel() for p in ddp.parameters()),
        "seconds": seconds,
        "bytes_sent": sent.item() / dist.get_world_size(),
        "training_loss": sum(losses[-20:]) / 20,
        "events": events.found,
    }
    if compression is not None:
        counts = compression.stats()
        share = counts.compressed / (counts.compressed + counts.uncompressed)
        found |= {"ways": method_names, "compressed_share": share}
    if dist.get_rank() == 0:
        # DDP gives its running means to the other ranks.
        found["loss"], found["accuracy"] = test(ddp.module, task.test)
    dist.barrier()
    return found


def loss_of(model: torch.nn.Module, batch: quality_tasks.Batch) -> torch.Tensor:
    """Return the mean cross-entropy, in nats."""
    return F.cross_entropy(model(batch[0]).flatten(0, -2), batch[1].flatten())


@torch.no_grad()
def test(model: torch.nn.Module, data: quality_tasks.Batch) -> tuple[float, float]:
    """Return the mean cross-entropy in nats, and the accuracy."""
    model.eval()
    loss = right = 0.0
    for inputs, classes in zip(data[0].split(CHUNK), data[1].split(CHUNK)):
        logits, classes = model(inputs).flatten(0, -2), classes.flatten()
        loss += F.cross_entropy(logits, classes, reduction="sum").item()
        right += (logits.argmax(1) == classes).sum().item()
    return loss / data[1].numel(), right / data[1].numel()


def bytes_sent() -> int:
    """Return the bytes that this network namespace has sent so far, on the wire and on loopback."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[8]) for line in lines)


if __name__ == "__main__":
    main()
