"""Energy of the largest elements, and of the largest coefficients, of gradients and momenta.

The benchmark trains the LSTM and the GPT of the text examples, uncompressed, in one process. In
some steps it takes the gradients, and their decayed sums, which are like a momentum without
feedback. It prints the shares of the sum of squares in three sets: the largest elements of each
parameter, the largest cosine coefficients of blocks of the flat vector (codec dct), and those of
DeMo's blocks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record
from harness import ROOT
from hipress.compression.compiler.backends.numpy.cosines import dct

sys.path.insert(0, str(ROOT / "examples" / "torch"))

BLOCKS = (16, 64, 256, 1024)


def main(
    models: str = "gpt lstm",
    looks: Annotated[str, typer.Option(help="Steps that are looked at.")] = "20 120",
    ratio: Annotated[float, typer.Option(help="Share that is kept.")] = 1 / 128,
    decay: float = 0.999,
    width: int = 192,
    layers: int = 4,
    least: Annotated[int, typer.Option(help="Elements of a parameter, at least.")] = 4096,
    seed: int = 0,
    output: Output = "codecs-cosines",
    quick: Quick = False,
) -> None:
    if quick:
        models, looks, width, layers = "lstm", "1 3", 32, 1
    record = Record(output, locals())
    rows = []
    steps = [int(step) for step in looks.split()]
    for model in models.split():
        for step, kind, vectors in trained(model, steps, decay, width, layers, least, seed):
            shares = shares_of(vectors, ratio)
            rows.append([f"{model}, step {step}: {kind}", *(f"{100 * s:.0f}%" for s in shares)])
    heads = ["", "elements", *(f"blocks of {b}" for b in BLOCKS), "DeMo's, 64 × 64"]
    record.table(heads, rows, f"energy of the largest 1/{1 / ratio:.0f}")
    record.save()


def trained(
    name: str, steps: list[int], decay: float, width: int, layers: int, least: int, seed: int
) -> Iterator[tuple[int, str, list]]:
    """Yield (step, kind, torch.float32 of each parameter's shape) for the steps to analyze."""
    import text
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    data = text.Text()
    model = text.make(name, len(data.characters), width, layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(1000 * seed)
    large = [p for p in model.parameters() if p.numel() >= least]
    momenta = [torch.zeros_like(p) for p in large]
    for step in range(max(steps) + 1):
        optimizer.zero_grad()
        text.loss_of(model, data.batch(8, generator)).backward()
        for momentum, parameter in zip(momenta, large):
            momentum.mul_(decay).add_(parameter.grad)
        if step in steps:
            yield step, "gradients", [p.grad for p in large]
            yield step, "momenta", momenta
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def shares_of(vectors: list, ratio: float) -> list[float]:
    """Return the shares of the elements, of the coefficients of BLOCKS, and of DeMo's.

    They are totals over all parameters.
    """
    from hipress.torch.integrations.demo import Blocks

    kept, total = np.zeros(len(BLOCKS) + 2), 0.0
    for vector in vectors:
        flat = vector.numpy().ravel()
        forms = [flat, *(dct(flat, block) for block in BLOCKS)]
        forms.append(Blocks(vector.shape, 64).coefficients(vector).numpy().ravel())
        total += np.square(flat, dtype=np.float64).sum()
        for k, form in enumerate(forms):
            squares = np.sort(np.square(form, dtype=np.float64))
            kept[k] += squares[-math.ceil(ratio * flat.size) :].sum()
    return list(kept / total)


if __name__ == "__main__":
    typer.run(main)
