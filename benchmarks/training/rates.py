"""Search for DiLoCo's learning rates: hundreds of small jobs at once, as one batched model.

All jobs train the GPT of examples/torch/text.py with the same tokens as its four ranks, by the same
arithmetic without compression. Their matrices are stacked and multiplied together. A GPU therefore
needs a minute where the real jobs need hours. Real jobs confirm the results (`python -m benchmarks
convergence`). A setting is "inner rate, outer rate, outer momentum, H, early steps, early H"; H = 0
is DDP.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
import typer
from torch.nn import functional as F

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record, console
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text
from models import Gpt

RANKS = 4
Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Setting:
    """Setting of one job. The rates' schedule is a warm-up of 50 steps, then a cosine to zero."""

    rate: float
    outer_rate: float
    outer_momentum: float
    sync_every: int
    early_steps: int
    early_sync_every: int


class Batched:
    """Many models of one shape, whose weights have a leading dimension [models].

    Args:
        vocabulary: Size of the GPT's vocabulary.
        width: Width of the GPT.
        layers: Number of the GPT's layers.
    """

    def __init__(self, vocabulary: int, width: int, layers: int, device: str) -> None:
        self.width, self.layers, self.heads = width, layers, width // 32
        self.one_hot = torch.eye(vocabulary, device=device)

    def losses(self, weights: Weights, tokens: torch.Tensor) -> torch.Tensor:
        """Return float32[models]: the mean cross-entropy of each model's own tokens.

        Args:
            tokens: int64[models, samples, length + 1].
        """
        models, samples, length = tokens.shape[0], tokens.shape[1], tokens.shape[2] - 1
        x = self.one_hot[tokens[:, :, :-1].reshape(models, -1)] @ weights["embed.weight"]
        x = x.view(models, samples, length, self.width)
        x = (x + weights["place.weight"].view(models, 1, length, -1)).flatten(1, 2)
        for layer in range(self.layers):
            block = f"blocks.{layer}."
            qkv = self._linear(self._norm(x, weights, block + "norm1"), weights, block + "qkv")
            qkv = qkv.view(models * samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(*qkv, is_causal=True).transpose(1, 2)
            x = x + self._linear(mixed.reshape(x.shape), weights, block + "out")
            inner = self._linear(self._norm(x, weights, block + "norm2"), weights, block + "feed.0")
            x = x + self._linear(F.gelu(inner), weights, block + "feed.2")
        logits = self._linear(self._norm(x, weights, "norm"), weights, "head")
        each = F.cross_entropy(logits.flatten(0, 1), tokens[:, :, 1:].flatten(), reduction="none")
        return each.view(models, -1).mean(1)

    @staticmethod
    def _linear(x: torch.Tensor, weights: Weights, name: str) -> torch.Tensor:
        bias, matrix = weights[f"{name}.bias"], weights[f"{name}.weight"]
        return torch.baddbmm(bias.unsqueeze(1), x, matrix.transpose(1, 2))

    def _norm(self, x: torch.Tensor, weights: Weights, name: str) -> torch.Tensor:
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return F.layer_norm(x, (self.width,)) * scale.unsqueeze(1) + shift.unsqueeze(1)


class Jobs:
    """Jobs of RANKS ranks each, whose weights have the leading dimensions [jobs, ranks].

    Args:
        first: Initial weights of each job, [jobs, ...].
        muon: Whether the blocks' matrices have Muon, and the rest AdamW. Otherwise all have AdamW.
    """

    def __init__(
        self, settings: Sequence[Setting], first: Weights, model: Batched, steps: int, muon: bool
    ) -> None:
        self.model, self.steps, self.muon = model, steps, muon
        device = model.one_hot.device

        def column(name: str) -> torch.Tensor:
            return torch.tensor([float(getattr(s, name)) for s in settings], device=device)

        self.rate, self.outer_rate = column("rate"), column("outer_rate")
        self.outer_momentum, self.early_steps = column("outer_momentum"), column("early_steps")
        never = torch.full_like(self.rate, 1e9)
        self.ddp = column("sync_every") == 0
        self.sync_every = torch.where(self.ddp, never, column("sync_every"))
        self.early_every = torch.where(self.early_steps > 0, column("early_sync_every"), never)
        self.outer = {n: w.clone() for n, w in first.items()}
        self.weights = {
            n: w.unsqueeze(1).repeat(1, RANKS, *[1] * (w.dim() - 1)).requires_grad_()
            for n, w in first.items()
        }
        self.first_moment = {n: torch.zeros_like(w) for n, w in self.weights.items()}
        self.second_moment = {n: torch.zeros_like(w) for n, w in self.weights.items()}
        self.momentum = {n: torch.zeros_like(w) for n, w in first.items()}
        self.step = torch.zeros((), device=device)

    def tensors(self) -> Iterator[torch.Tensor]:
        """Yield all tensors that a step changes."""
        for group in (
            self.outer,
            self.weights,
            self.first_moment,
            self.second_moment,
            self.momentum,
        ):
            yield from group.values()
        yield self.step

    def advance(self, tokens: torch.Tensor) -> None:
        """Make one step of all jobs.

        Args:
            tokens: int64[jobs, ranks, samples, length + 1].
        """
        flat = {n: w.flatten(0, 1) for n, w in self.weights.items()}
        loss = self.model.losses(flat, tokens.flatten(0, 1)).sum()
        gradients = torch.autograd.grad(loss, list(self.weights.values()))
        with torch.no_grad():
            together = [
                torch.where(_as(self.ddp, g), g.mean(1, keepdim=True).expand_as(g), g)
                for g in gradients
            ]
            squares = sum(g.flatten(2).square().sum(2) for g in together)
            clip = (1 / (squares.sqrt() + 1e-6)).clamp(max=1.0)
            cosine = 0.5 * (1 + torch.cos(math.pi * self.step / self.steps))
            rate = self.rate * cosine * ((self.step + 1) / 50).clamp(max=1.0)
            self.step += 1
            for name, gradient in zip(self.weights, together, strict=True):
                clipped = gradient * clip.view(*clip.shape, *[1] * (gradient.dim() - 2))
                self._inner_step(name, clipped, _as(rate, gradient))
            self._synchronize()

    def _inner_step(self, name: str, gradient: torch.Tensor, rate: torch.Tensor) -> None:
        weights, first = self.weights[name], self.first_moment[name]
        weights.mul_(1 - 0.01 * rate)
        if self.muon and name.startswith("blocks.") and weights.dim() == 4:
            first.mul_(0.95).add_(gradient)
            update = orthogonal((gradient + 0.95 * first).flatten(0, 1)).view_as(gradient)
            weights.sub_(rate * 0.2 * math.sqrt(max(weights.shape[2:])) * update)
            return
        second = self.second_moment[name]
        first.lerp_(gradient, 0.1)
        second.mul_(0.98).addcmul_(gradient, gradient, value=0.02)
        root = (second / (1 - 0.98**self.step)).sqrt() + 1e-8
        weights.sub_(rate * (first / (1 - 0.9**self.step)) / root)

    def _synchronize(self) -> None:
        """Synchronize all ranks; see hipress.local_sgd, with one fragment and no delay."""
        early = ~self.ddp & (self.step <= self.early_steps)
        mean = early & (torch.remainder(self.step, self.early_every) == 0)
        mean |= early & (self.step == self.early_steps)
        in_rounds = self.step - self.early_steps
        turn = ~self.ddp & ~early & (torch.remainder(in_rounds, self.sync_every) == 0)
        for name, weights in self.weights.items():
            outer, momentum = self.outer[name], self.momentum[name]
            factor = _as(self.outer_momentum, outer)
            moved = outer - weights.mean(1)
            grown = factor * momentum + moved
            stepped = outer - _as(self.outer_rate, outer) * (moved + factor * grown)
            momentum.copy_(torch.where(_as(turn, outer), grown, momentum))
            averaged = torch.where(_as(mean | self.ddp, outer), outer - moved, outer)
            outer.copy_(torch.where(_as(turn, outer), stepped, averaged))
            new = torch.where(_as(turn | mean, weights), outer.unsqueeze(1), weights)
            weights.copy_(new)


def _as(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return [jobs] values with as many dimensions as ``like``."""
    return values.view(-1, *[1] * (like.dim() - 1))


def orthogonal(matrices: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Run Muon's Newton-Schulz iteration (Jordan et al., 2024) on [matrices, rows, columns]."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.flatten(1).norm(dim=1).view(-1, 1, 1) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose(1, 2)
        x = a * x + (b * square + c * square @ square) @ x
    return x.transpose(1, 2) if tall else x


class Search:
    """Runner of settings with some seeds each.

    Args:
        batch_size: Samples of a rank in a step.
    """

    def __init__(self, steps: int, width: int, layers: int, batch_size: int, muon: bool) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_float32_matmul_precision("high")
        self.text = text.Text()
        self.steps, self.batch_size, self.muon = steps, batch_size, muon
        vocabulary = len(self.text.characters)
        self.shape = (vocabulary, width, layers)
        self.model = Batched(*self.shape, self.device)

    def run(self, jobs: Sequence[tuple[Setting, int]]) -> list[float]:
        """Return the loss on held-out text for each (setting, seed)."""
        seeds = sorted({seed for _, seed in jobs})
        of = torch.tensor([seeds.index(seed) for _, seed in jobs], device=self.device)
        first = [self._first(seed) for seed in seeds]
        batches = torch.stack([self._batches(seed) for seed in seeds]).to(self.device)
        begin = {n: torch.stack([w[n] for w in first]).to(self.device)[of] for n in first[0]}
        all_ = Jobs([s for s, _ in jobs], begin, self.model, self.steps, self.muon)
        tokens = batches[of, 0].clone()
        make = self._captured(all_, tokens)
        for step in range(self.steps):
            tokens.copy_(batches[of, step])
            make()
        generator = torch.Generator().manual_seed(5)
        held_out = self.text.batch(256, generator, test=True).to(self.device).unsqueeze(0)
        with torch.no_grad():
            return [
                self.model.losses({n: w[i : i + 1] for n, w in all_.outer.items()}, held_out).item()
                for i in range(len(jobs))
            ]

    def _first(self, seed: int) -> Mapping[str, torch.Tensor]:
        torch.manual_seed(seed)
        vocabulary, width, layers = self.shape
        gpt = Gpt(vocabulary, width, layers, heads=width // 32, context=text.CONTEXT)
        return {name: parameter.detach() for name, parameter in gpt.named_parameters()}

    def _batches(self, seed: int) -> torch.Tensor:
        """Return int64[steps, ranks, samples, length + 1], as the example's ranks get them."""
        generators = [torch.Generator().manual_seed(1000 * seed + rank) for rank in range(RANKS)]
        return torch.stack(
            [
                torch.stack([self.text.batch(self.batch_size, g) for g in generators])
                for _ in range(self.steps)
            ]
        )

    def _captured(self, jobs: Jobs, tokens: torch.Tensor):
        """Return a function that makes a step with ``tokens``, on a GPU as a CUDA graph."""
        if self.device == "cpu":
            return lambda: jobs.advance(tokens)
        saved = [tensor.detach().clone() for tensor in jobs.tensors()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            jobs.advance(tokens)
            jobs.advance(tokens)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            jobs.advance(tokens)
        with torch.no_grad():
            for tensor, before in zip(jobs.tensors(), saved, strict=True):
                tensor.copy_(before)
        return graph.replay


def main(
    optimizer: Annotated[str, typer.Option(help="muon or adam.")] = "muon",
    rates: Annotated[str, typer.Option(help="Inner rates.")] = "0.008 0.016",
    outer: Annotated[str, typer.Option(help="Outer rate,momentum.")] = "1.0,0.0 0.7,0.7",
    rounds: Annotated[
        str, typer.Option(help="H,early steps,early H; 0,0,0 is DDP.")
    ] = "0,0,0 30,0,0 30,600,5",
    seeds: int = 3,
    first_seed: int = 0,
    steps: int = 3000,
    width: int = 64,
    layers: int = 2,
    batch_size: Annotated[int, typer.Option(help="Per rank.")] = 4,
    at_once: Annotated[int, typer.Option(help="Jobs.")] = 150,
    output: Output = "diloco-rates",
    quick: Quick = False,
) -> None:
    if quick:
        rates, outer, seeds, steps = "0.008", "0.7,0.7", 1, 12
    record = Record(output, locals())
    settings = {
        Setting(float(rate), *(pair if sync_every else (0.0, 0.0)), sync_every, early, early_every)
        for rate, pair, (sync_every, early, early_every) in itertools.product(
            rates.split(), _numbers(outer, float), _numbers(rounds, int)
        )
    }
    if any(s.early_steps and not s.early_sync_every for s in settings):
        raise typer.BadParameter("early steps need an early H", param_hint="--rounds")
    jobs = [(s, seed) for s in settings for seed in range(first_seed, first_seed + seeds)]
    search, losses = Search(steps, width, layers, batch_size, optimizer == "muon"), []
    for begin in range(0, len(jobs), at_once):
        losses += search.run(jobs[begin : begin + at_once])
        console.print(f"{len(losses)} of {len(jobs)} jobs")
    found: dict[Setting, list[float]] = {}
    for (setting, _), loss in zip(jobs, losses, strict=True):
        found.setdefault(setting, []).append(loss)
    best = sorted(found.items(), key=lambda item: statistics.fmean(item[1]))
    ddp = next((statistics.fmean(of) for s, of in best if not s.sync_every), math.nan)
    cells = [
        [
            s.sync_every or "DDP",
            f"{s.early_steps} every {s.early_sync_every}" * bool(s.early_steps),
            f"{s.rate:g}",
            f"{s.outer_rate:g}, {s.outer_momentum:g}" * bool(s.sync_every),
            f"{statistics.fmean(of):.4f}",
            f"{100 * (statistics.fmean(of) / ddp - 1):+.1f}%",
            f"{min(of):.4f} to {max(of):.4f}",
        ]
        for s, of in best
    ]
    heads = [
        "H",
        "early steps",
        "inner rate",
        "outer rate, momentum",
        "loss",
        "against DDP's best",
        "of seeds",
    ]
    record.table(heads, cells, f"{optimizer}: loss on held-out text after {steps} steps")
    record.save()


def _numbers(text_: str, kind: type) -> list[tuple]:
    return [tuple(kind(part) for part in item.split(",")) for item in text_.split()]
