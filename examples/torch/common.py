"""Parts that the examples share: arguments, the process group, DDP with compression, data."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch


def parser(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all examples take."""
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--compression", default="", metavar="TYPE", help="auto, onebit, dgc, ...; none if empty")
    add(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the compression, such as ratio=0.01; may be repeated",
    )
    add("--topology", default="ps", help="ps, ring, or another topology")
    add(
        "--shared-momentum",
        type=float,
        default=0.0,
        help="compress gradients with this momentum, instead of the optimizer's",
    )
    add("--min-size", type=int, default=16 * 1024, help="smaller gradients go uncompressed")
    add("--warmup-steps", type=int, default=0)
    add("--steps", type=int, default=defaults.get("steps", 100))
    add("--batch-size", type=int, default=defaults.get("batch_size", 16), help="per rank")
    add("--learning-rate", type=float, default=defaults.get("learning_rate", 0.1))
    add(
        "--optimizer",
        choices=["sgd", "adam", "frozen", "muon", "demo"],
        default=defaults.get("optimizer", "sgd"),
        help="frozen: Adam whose denominators stay after the warm-up steps; "
        "muon: for the matrices of a GPT's blocks, and AdamW for the rest; "
        "demo: signs of a few cosine coefficients, which is a compression by itself",
    )
    add("--momentum", type=float, default=0.9, help="of SGD")
    add("--seed", type=int, default=0)
    add(
        "--sync-every",
        type=int,
        default=0,
        metavar="STEPS",
        help="synchronize weights every so many steps (DiLoCo), not gradients in each",
    )
    add("--outer-learning-rate", type=float, default=0.7)
    add("--outer-momentum", type=float, default=0.9)
    add(
        "--early-steps",
        type=int,
        default=0,
        help="before that, in which weights are averaged every --early-sync-every steps",
    )
    add("--early-sync-every", type=int, default=5)
    add("--fragments", type=int, help="parts of the model that take turns")
    add("--sync-delay", type=int, help="steps that a part may travel")
    add("--sync-alpha", type=float, default=0.0, help="of its own weights that a rank keeps")
    return parser


def params(args: argparse.Namespace) -> dict[str, float | str]:
    """Return the compression's parameters, with numbers where they look like numbers."""
    found: dict[str, float | str] = {}
    for item in args.param:
        name, _, value = item.partition("=")
        found[name] = number(value)
    return found


def number(text: str) -> float | str:
    """Return a text as a number if it looks like one."""
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def start(args: argparse.Namespace) -> None:
    """Join the job that torchrun started, or without torchrun a job of one rank."""
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    dist.init_process_group("gloo")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(args.seed)


def distribute(
    model: torch.nn.Module, args: argparse.Namespace
) -> tuple[torch.nn.Module, hipress.torch.Compression | None]:
    """Return the model in DDP with the requested compression, or itself with DiLoCo or DeMo."""
    if args.sync_every or args.optimizer == "demo":
        return model, None
    model, compression = DistributedDataParallel(model), None
    if args.compression:
        more = params(args)
        if args.compression == "dgc":
            more.setdefault("momentum", 0.0)  # the optimizer's
        compression = hipress.torch.compress(
            model,
            args.compression,
            topology=args.topology,
            min_size=args.min_size,
            warmup_steps=args.warmup_steps,
            shared_momentum=args.shared_momentum,
            **more,
        )
    return model, compression


def may_clip(args: argparse.Namespace, step: int) -> bool:
    """Return whether this step's results are uncompressed gradients without momentum."""
    if args.sync_every:  # they are this rank's own gradients
        return True
    if args.optimizer == "demo":  # only signs count
        return False
    if args.compression in ("bf16", "fp16", "lossless"):  # these leave nothing for later steps
        return True
    if args.compression and args.shared_momentum and args.optimizer != "frozen":
        return False
    ramp = args.compression == "dgc" and "warmup" not in params(args)
    return not args.compression or (step < args.warmup_steps and not ramp)


class Several:
    """Optimizers of disjoint parameters that make their steps together."""

    def __init__(self, *optimizers: torch.optim.Optimizer) -> None:
        self.optimizers = optimizers

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def muon_of(model: torch.nn.Module, rate: float) -> Several:
    """Return Muon for the matrices of a GPT's blocks, and AdamW for the rest.

    Muon's steps are as long as AdamW's.
    """
    matrices = [p for n, p in model.named_parameters() if "blocks." in n and p.dim() == 2]
    if not matrices:
        raise SystemExit("--optimizer muon is for --model gpt")
    known = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in known]
    return Several(
        torch.optim.Muon(matrices, rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, rate, betas=(0.9, 0.98)),
    )


def optimizer_of(
    model: torch.nn.Module,
    args: argparse.Namespace,
    compression: hipress.torch.Compression | None = None,
) -> torch.optim.Optimizer | Several:
    """Return SGD, Adam, Adam with a warm-up, Muon, or DeMo."""
    parameters, rate = model.parameters(), args.learning_rate
    if args.optimizer == "demo":
        hipress.torch.broadcast_parameters(model.state_dict())
        return hipress.torch.DeMo(
            model.named_parameters(), rate, topology=args.topology, **params(args)
        )
    if args.optimizer == "muon":
        return muon_of(model, rate)
    if args.optimizer == "adam":
        return torch.optim.AdamW(parameters, lr=rate, betas=(0.9, 0.98))
    if args.optimizer == "frozen":
        return hipress.torch.FrozenAdamW(
            parameters,
            lr=rate,
            betas=(0.9, 0.98),
            freeze_step=args.warmup_steps,
            compression=compression,
        )
    momentum = args.momentum
    if compression is not None and compression.settings.any_momentum:
        compression.settings.check_momentum()
        momentum = 0.0  # the compression's momentum replaces it
    return torch.optim.SGD(parameters, lr=rate, momentum=momentum)


def synchronizing(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer | Several, args: argparse.Namespace
) -> contextlib.AbstractContextManager:
    """Return a context that synchronizes the ranks' weights every --sync-every steps, if given."""
    if not args.sync_every:
        return contextlib.nullcontext()
    momentum = args.outer_momentum
    outer = torch.optim.SGD(
        model.parameters(), lr=args.outer_learning_rate, momentum=momentum, nesterov=momentum > 0
    )
    inner = optimizer.optimizers if isinstance(optimizer, Several) else optimizer
    return hipress.torch.DiLoCo(
        model,
        inner,
        outer,
        args.sync_every,
        fragments=args.fragments,
        early_steps=args.early_steps,
        early_sync_every=args.early_sync_every,
        fragment_sync_delay=args.sync_delay,
        fragment_update_alpha=args.sync_alpha,
        compression={"type": args.compression or "none", **params(args)},
        topology=args.topology,
        min_size=args.min_size,
    )


class Report:
    """Logger that prints a line of JSON from time to time, on rank 0."""

    def __init__(self, every: int = 10) -> None:
        self._every, self._start = every, time.perf_counter()

    def __call__(self, step: int, loss: torch.Tensor, **more: Any) -> None:
        if step % self._every and not more:
            return
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            line = {"step": step, "loss": round(mean.item() / dist.get_world_size(), 4)}
            line["seconds"] = round(time.perf_counter() - self._start, 2)
            print(json.dumps({**line, **more}), flush=True)


def shard(length: int, generator: torch.Generator) -> torch.Tensor:
    """Return this rank's share of a shuffle of ``range(length)``. All shares have equal length."""
    order = torch.randperm(length, generator=generator)
    world_size = dist.get_world_size()
    return order[: length // world_size * world_size][dist.get_rank() :: world_size]
