"""Trains a character language model, an LSTM or a small GPT, on the Python language reference.

    torchrun --nproc-per-node=4 examples/torch/text.py --model gpt --compression dgc \\
        --param ratio=0.01

The text is what ``help()`` shows of Python's topics, some 700,000 characters in every CPython.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import torch
import torch.distributed as dist
from models import CharLstm, Gpt
from torch.nn import functional as F

import common

CONTEXT = 64


class Text:
    """Characters as numbers. The last tenth is for validation."""

    def __init__(self) -> None:
        from pydoc_data.topics import topics

        text = "\n".join(topics[key] for key in sorted(topics))
        self.characters = sorted(set(text))
        number = {c: i for i, c in enumerate(self.characters)}
        data = torch.tensor([number[c] for c in text])
        self._train, self._test = data[: -len(data) // 10], data[-len(data) // 10 :]

    def batch(self, size: int, generator: torch.Generator, test: bool = False) -> torch.Tensor:
        """Return int64[size, CONTEXT + 1] from random positions."""
        data = self._test if test else self._train
        at = torch.randint(len(data) - CONTEXT, (size, 1), generator=generator)
        return data[at + torch.arange(CONTEXT + 1)]


def loss_of(model: torch.nn.Module, text: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the next character, in nats."""
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def make(name: str, vocabulary: int, width: int, layers: int) -> torch.nn.Module:
    if name == "lstm":
        return CharLstm(vocabulary, width)
    return Gpt(vocabulary, width, layers, heads=width // 32, context=CONTEXT)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = common.parser(
        __doc__.splitlines()[0], steps=400, batch_size=8, learning_rate=None, optimizer=None
    )
    parser.add_argument("--model", choices=["lstm", "gpt"], default="gpt")
    parser.add_argument("--width", type=int, default=192, help="for gpt a multiple of 32")
    parser.add_argument("--layers", type=int, default=4, help="of gpt")
    parser.add_argument(
        "--last-rate", type=float, default=0.1, help="the learning rate's share at the end"
    )
    args = parser.parse_args(given)
    args.optimizer = args.optimizer or ("sgd" if args.model == "lstm" else "adam")
    if args.learning_rate is None:
        args.learning_rate = 0.3 if args.optimizer == "sgd" else 2e-3
    return args


def train(args: argparse.Namespace, report: Callable[..., None]) -> None:
    """Train a model, and report the loss during training and on held-out text at the end."""
    torch.manual_seed(args.seed)
    text = Text()
    model = make(args.model, len(text.characters), args.width, args.layers)
    model, compression = common.distribute(model, args)
    optimizer = common.optimizer_of(model, args, compression)
    generator = torch.Generator().manual_seed(1000 * args.seed + dist.get_rank())
    with common.synchronizing(model, optimizer, args):
        for step in range(args.steps):
            cosine = 0.5 * (1 + math.cos(math.pi * step / args.steps))
            falling = args.last_rate + (1 - args.last_rate) * cosine
            for group in optimizer.param_groups:
                group["lr"] = args.learning_rate * min(1.0, (step + 1) / 50) * falling
            optimizer.zero_grad()
            loss = loss_of(model, text.batch(args.batch_size, generator))
            loss.backward()
            if common.may_clip(args, step):
                # Compression sends delayed gradients in larger values. Clipping would lose these
                # permanently.
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            report(step, loss)
    with torch.no_grad():
        held_out = text.batch(256, torch.Generator().manual_seed(5), test=True)
        report(args.steps, loss, test_loss=round(loss_of(model, held_out).item(), 4))


def main() -> None:
    args = arguments()
    common.start(args)
    train(args, common.Report(every=20))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
