"""One rank of steps.py or each.py, which trains a model with each method and reports the times.

With ``block``, all methods' models exist at once, and take turns of so many steps.

A method is one of these:

- "float32", "fp16" or "powersgd:RANK": DDP and its own hooks.
- "TYPE:NAME=VALUE,...": HiPress, also with shared_momentum. "hipress.powersgd:rank=4" is HiPress's
  PowerSGD.
- "auto": its trial precedes the timed steps.
- "alone": nothing is sent. Each rank keeps its gradients, which is the lower bound of all steps.
- "fsdp2/float32" or "fsdp2/bf16": uncompressed FSDP2 over Gloo, with weights and gradients of that
  type, which shards each block of the GPT.
- "fsdp2/TYPE:NAME=VALUE,...": HiPress in FSDP2, also with the gathers' options.

"METHOD+late" begins to compress after ``late`` steps; for HiPress, the GPT's Adam freezes its
denominators then. Without it, PyTorch's PowerSGD begins after 2 steps (its default is 1000).
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from benchmarks.common.timing import options, report
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

LATE = "+late"
ALONE = "alone"
AUTO = "auto"
OURS = "hipress."
"""Prefix of types that have the same name as a peer's method."""
FSDP = "fsdp2/"
PEERS = ("float32", "fp16", "powersgd", FSDP + "float32", FSDP + "bf16")
BATCHES = 4
"""Number of batches in each rank's training set of images."""
LAGGING = 3.0


def main() -> None:
    args = options(block=0, layers=4)

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if args.block:
        take_turns([Training(method, args) for method in args.methods], args)
    else:
        for method in args.methods:
            take_turns([Training(method, args)], args)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def take_turns(trainings: list[Training], args: SimpleNamespace) -> None:
    """Make the steps of all methods, ``block`` at a time or all at once, and report the times.

    With turns, a method that takes LAGGING times as long as the fastest makes only two turns.
    """
    steps = args.warmup + args.steps
    running, turns = trainings, range(0, steps, args.block or steps)
    for turn, first in enumerate(turns):
        for training in running[:: -1 if turn % 2 else 1]:
            training.make(first, min(first + turns.step, steps))
        if turn == 1:
            times = [training.seconds() for training in running]
            fastest = min(s for training, s in zip(running, times) if training.method != ALONE)
            running = [each for each, s in zip(running, times) if s < LAGGING * fastest]
    for training in trainings:
        report(**training.report())


class Training:
    """One model with its method, which has settled."""

    def __init__(self, method: str, args: SimpleNamespace) -> None:
        import torch
        import torch.distributed as dist

        self.method, self._steps = method, args.warmup + args.steps
        self._rank = dist.get_rank()
        torch.manual_seed(args.seed)
        name, late = method.removesuffix(LATE), method.endswith(LATE)
        model, self._loss_of, optimizer = workload(args, 1000 * args.seed + self._rank)
        self._parameters = sum(p.numel() for p in model.parameters())
        if name.startswith(FSDP):
            self._ddp = sharded(model, name)
            optimizer = adam_of(model)  # of the sharded parameters
        else:
            self._ddp = replicated(model, name)
        dist.barrier()
        start = time.perf_counter()
        compression = self._compression = attach(self._ddp, name, args.late if late else 0)
        self._attached = time.perf_counter() - start
        if late and compression is not None and args.model == "gpt":
            optimizer = frozen(optimizer, args.late, compression)
        elif compression is not None and compression.settings.any_momentum:
            if args.model == "gpt":
                raise ValueError(f"{name}: Adam has a momentum of its own; use {name}{LATE}")
            optimizer.param_groups[0]["momentum"] = 0.0  # the compression's momentum replaces it
        self._optimizer, self._rate = optimizer, optimizer.param_groups[0]["lr"]
        self._seconds, self._processor, self._sent, self._losses = [], [], [], []
        self._trial = 0
        while compression is not None and not compression.is_settled:
            self._trial += 1
            self._step()
        self._settled = time.perf_counter() - start
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of the initialization

    def _step(self):
        self._optimizer.zero_grad()
        loss = self._loss_of(self._ddp)
        loss.backward()
        self._optimizer.step()
        return loss

    def make(self, first: int, end: int) -> None:
        """Make the steps from ``first`` to ``end``, each timed."""
        import torch.distributed as dist

        for step in range(first, end):
            for group in self._optimizer.param_groups:
                falling = 0.1 + 0.45 * (1 + math.cos(math.pi * step / self._steps))
                group["lr"] = self._rate * min(1.0, (step + 1) / 20) * falling
            dist.barrier()
            before = sent_bytes()
            start, used = time.perf_counter(), time.process_time()
            loss = self._step()
            self._seconds.append(time.perf_counter() - start)
            self._processor.append(time.process_time() - used)
            self._sent.append(sent_bytes() - before)
            self._losses.append(loss.detach())

    def seconds(self) -> float:
        """Return the median step time so far, of the slowest rank."""
        import torch
        import torch.distributed as dist

        median = torch.tensor(statistics.median(self._seconds))
        dist.all_reduce(median, dist.ReduceOp.MAX)
        return median.item()

    def report(self) -> dict:
        """Return the measurements. All ranks call it together."""
        import torch
        import torch.distributed as dist

        mean = torch.stack(self._losses)
        dist.all_reduce(mean)
        gathers = getattr(self._compression, "gathers", None)
        found = {
            "rank": self._rank,
            "method": self.method,
            "parameters": self._parameters,
            "seconds": self._seconds,
            "processor": self._processor,
            "sent": self._sent,
            "losses": (mean / dist.get_world_size()).tolist(),
            "peak_bytes": peak_bytes(),
            "replica_bytes": gathers.replica_bytes if gathers else 0,
        }
        if self.method == AUTO:
            times = self._attached, self._settled, self._trial
            found |= explained(self._compression, *times)
        return found


def sent_bytes() -> int:
    """Return the bytes that this node's network interfaces have sent so far, with headers."""
    lines = [line.replace(":", " ").split() for line in open("/proc/net/dev")][2:]
    return sum(int(words[9]) for words in lines if words[0] != "lo")


def peak_bytes() -> int:
    """Return the largest memory of this process since the last method's initialization."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024 * int(peak)


def explained(compression, attached: float, settled: float, steps: int) -> dict:
    """Return the choice with its reasons, and the seconds of ``compress()`` and of all trials."""
    return {
        **chosen(compression.explain()),
        "chose_seconds": [attached],
        "settled_seconds": [settled],
        "trial_steps": steps,
    }


def chosen(explanation) -> dict:
    """Return the method of type "auto" with its reasons, and the times of all measured methods.

    Times are milliseconds of gradients alone, for methods with all samples.
    """
    from hipress.autotune.choice import SLOWER

    method_name = next((row.method for row in explanation.rows if row.chosen), "")
    alone = {row.method: row.gradients_ms for row in explanation.rows if row.note != SLOWER}
    return {"way": method_name, "explanation": str(explanation), "gradients_ms": alone}


def workload(args: SimpleNamespace, seed: int):
    """Return (model, its loss on the next batch, optimizer)."""
    import torch
    from torch.nn import functional as F

    if args.model == "gpt":
        import text

        data = text.Text()
        model = text.make("gpt", len(data.characters), width=512, layers=args.layers)
        generator = torch.Generator().manual_seed(seed)

        def loss_of(ddp):
            characters = data.batch(args.batch_size, generator)
            return text.loss_of(ddp, characters[:, : args.context + 1])

        return model, loss_of, adam_of(model)

    from images import Synthetic

    size, model = (32, learning_vgg()) if args.model == "vgg" else (64, resnet())
    images, labels = Synthetic(10, size, seed).batch(BATCHES * args.batch_size)
    turns = itertools.cycle(zip(images.split(args.batch_size), labels.split(args.batch_size)))

    def loss_of(ddp):
        x, y = next(turns)
        return F.cross_entropy(ddp(x), y)

    # At twice the rate the loss of some seeds rises for a while, and results are chance.
    return model, loss_of, torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)


def adam_of(model):
    """Return the optimizer of the GPT."""
    import torch

    return torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.98), fused=True)


def learning_vgg():
    """Return VGG19 without normalization, set up so that it learns its few images in 100 steps.

    It has He et al.'s weights (2015), a small last layer, and no dropout.
    """
    import torch
    from models import vgg

    model = vgg(image_size=32, classes=10, hidden=4096, width=0.25)
    for module in model:
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            torch.nn.init.zeros_(module.bias)
        elif isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    torch.nn.init.normal_(model[-1].weight, std=0.01)
    return model


def resnet():
    """Return ResNet-50 for 10 classes."""
    from models import resnet50

    return resnet50(10)


def frozen(optimizer, step: int, compression):
    """Return the same AdamW, but with denominators that are frozen after ``step`` steps."""
    from hipress.torch import FrozenAdamW

    (group,) = optimizer.param_groups
    return FrozenAdamW(
        group["params"], group["lr"], group["betas"], freeze_step=step, compression=compression
    )


def replicated(model, method: str):
    """Return the model in DDP, with buckets that suit the method."""
    from torch.nn.parallel import DistributedDataParallel

    # PyTorch's PowerSGD blocks if there are several buckets.
    size = 2000 if method.startswith("powersgd") else 25
    return DistributedDataParallel(model, bucket_cap_mb=size, gradient_as_bucket_view=True)


def sharded(model, method: str):
    """Return the GPT in FSDP2, with weights and gradients of the method's type."""
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dtype = torch.bfloat16 if method == FSDP + "bf16" else None
    options = {"mp_policy": MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=dtype)}
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def attach(ddp, method: str, late: int):
    """Give the model the method's communication hook, which compresses after ``late`` steps.

    Returns:
        The compression, if it is HiPress's.
    """
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    name, _, rest = method.partition(":")
    if name in (FSDP + "float32", FSDP + "bf16"):
        return None
    if name.startswith(FSDP):
        import hipress.torch

        return hipress.torch.compress_fsdp(ddp, name.removeprefix(FSDP), **values_of(rest))
    if name == "fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(rest or 1), start_powerSGD_iter=max(2, late)
        )
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name == ALONE:
        ddp.register_comm_hook(None, keep)
    elif name != "float32":
        import hipress.torch

        options: dict = {"warmup_steps": late}
        if name == "dgc" and late:
            options["warmup"] = 0  # this replaces its own warm-up
        options |= values_of(rest)
        return hipress.torch.compress(ddp, name.removeprefix(OURS), **options)
    return None


def values_of(text: str) -> dict:
    """Return NAME=VALUE,... as a dict, with numbers where they look like numbers."""
    from common import number

    values = dict(item.split("=") for item in filter(None, text.split(",")))
    return {key: number(value) for key, value in values.items()}


def keep(state, bucket):
    """Return a bucket unchanged, as a communication hook without communication."""
    import torch

    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


if __name__ == "__main__":
    main()
