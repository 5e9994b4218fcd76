"""Codec lossless on gradients of the examples' networks: bytes, speed on one thread, and zlib.

The benchmark trains the GPT of the text examples on text, and the small CNN and a narrow VGG19 on
noisy pictures, in one process, in float32 and with all numbers in bfloat16. In some steps it
encodes each gradient of 1024 elements or more. "GB/s" are of gradient, the fastest of many runs on
partitions of at most 256 Ki elements; "sum of 4" reads four payloads of them. zlib (level 1) gets
the elements' first bytes, then their second ones, and so on, which suits it best.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np
import typer

import hipress
from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record, verdict
from benchmarks.common.timing import best_seconds
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

WANTED = {"bfloat16": 1.35, "float32": 1.1}
"""Required factors by which payloads are smaller than gradients."""
WANTED_GB_PER_S = 2.0
PARTITION = 1 << 18
LEAST = 1024


def main(
    models: str = "gpt cnn vgg",
    steps: int = 30,
    looks: Annotated[int, typer.Option(help="Steps of which gradients are encoded.")] = 3,
    seconds: Annotated[float, typer.Option(help="For each time that is measured.")] = 0.5,
    seed: int = 0,
    output: Output = "codecs-lossless",
    quick: Quick = False,
) -> None:
    if quick:
        models, steps, looks, seconds = "cnn", 2, 1, 0.02
    record = Record(output, locals())
    rows = []
    for model in models.split():
        for dtype in WANTED:
            found = [
                measured(gradients, dtype, seconds)
                for gradients in trained(model, dtype, steps, looks, seed)
            ]
            ratio = sum(one["bytes"] for one in found) / sum(one["sent"] for one in found)
            fast = {key: max(one[key] for one in found) for key in ("encode", "decode", "sum")}
            by_zlib = sum(one["bytes"] for one in found) / sum(one["zlib"] for one in found)
            speed = max(one["zlib speed"] for one in found)
            rows.append(
                [
                    f"{model}, {dtype}",
                    f"{sum(one['elements'] for one in found) // len(found):,}",
                    f"{ratio:.3f}",
                    *(f"{fast[key]:.1f}" for key in fast),
                    f"{by_zlib:.3f}",
                    f"{speed:.2f}",
                ]
            )
            verdict(ratio >= WANTED[dtype], f"{model}: {WANTED[dtype]} times fewer bytes, {dtype}")
            enough = min(fast["encode"], fast["decode"]) >= WANTED_GB_PER_S
            verdict(enough, f"{model}: {WANTED_GB_PER_S} GB/s each way, {dtype}")
    heads = [
        "",
        "elements",
        "times fewer bytes",
        "encode GB/s",
        "decode GB/s",
        "sum of 4 GB/s",
        "zlib: times fewer bytes",
        "GB/s",
    ]
    record.table(heads, rows, f"lossless, gradients of {looks} of {steps} steps, one thread")
    record.save()


def looked_at(steps: int, looks: int) -> set[int]:
    """Return the numbers of the steps to analyze, spread over all, with the last one."""
    return {steps * (k + 1) // looks - 1 for k in range(looks)}


def trained(
    model: str, dtype: str, steps: int, looks: int, seed: int
) -> Iterator[list[np.ndarray]]:
    """Yield the gradients of some steps of training; bfloat16 as uint16."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network, loss_of = task(model, seed)
    network = network.to(getattr(torch, dtype))
    make = torch.optim.AdamW if model == "gpt" else torch.optim.SGD
    optimizer = make(network.parameters(), lr=1e-3 if model == "gpt" else 0.05)
    wanted = looked_at(steps, looks)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(network).backward()
        if step in wanted:
            grads = [p.grad.flatten() for p in network.parameters() if p.numel() >= LEAST]
            kind = torch.uint16 if dtype == "bfloat16" else torch.float32
            yield [grad.view(kind).numpy().copy() for grad in grads]
        optimizer.step()


def task(model: str, seed: int) -> tuple[object, Callable]:
    """Return (a network, a function that computes its loss of the next batch)."""
    import models
    import text
    import torch
    from torch.nn import functional

    generator = torch.Generator().manual_seed(seed)
    if model == "gpt":
        data = text.Text()
        network = text.make("gpt", len(data.characters), 192, 4)
        return network, lambda network: text.loss_of(network, data.batch(8, generator))
    channels, side = (1, 8) if model == "cnn" else (3, 32)
    prototypes = torch.randn(10, channels, side, side, generator=generator)
    network = models.small_cnn() if model == "cnn" else models.vgg(32, 10, 512, 0.25)

    def loss_of(network: torch.nn.Module) -> torch.Tensor:
        labels = torch.randint(10, (16,), generator=generator)
        images = prototypes[labels] + torch.randn(16, *prototypes.shape[1:], generator=generator)
        scores = network(images.to(next(network.parameters()).dtype))
        return functional.cross_entropy(scores.float(), labels)

    return network, loss_of


def measured(gradients: list[np.ndarray], dtype: str, seconds: float) -> dict[str, float]:
    """Return bytes of gradients, their payloads and zlib's, and GB/s of the codec and of zlib."""
    codec = hipress.Compressor("lossless")
    sent = by_zlib = 0
    for x in gradients:
        payload = codec.encode(x, dtype)
        if codec.decode(payload, x.size, dtype).tobytes() != x.tobytes():
            raise AssertionError("a gradient has not come back bit for bit")
        sent += len(payload)
        by_zlib += len(zlib.compress(planes(x), 1))
    part = max(gradients, key=len)[:PARTITION]
    payload = codec.encode(part, dtype)
    room = np.zeros(codec.max_bytes(part.size, dtype), np.uint8)
    back, total = np.zeros_like(part), np.zeros(part.size, np.float32)
    ordered = planes(part)
    encode = best_seconds(lambda: codec.encode(part, dtype, out=room), seconds)
    kind = {} if dtype == "float32" else {"dtype": dtype}
    decode = best_seconds(lambda: codec.decode(payload, out=back, **kind), seconds)
    add = best_seconds(lambda: codec.decode_sum([payload] * 4, out=total, dtype=dtype), seconds)
    compress = best_seconds(lambda: zlib.compress(ordered, 1), seconds)
    return {
        "elements": sum(x.size for x in gradients),
        "bytes": sum(x.nbytes for x in gradients),
        "sent": sent,
        "zlib": by_zlib,
        "encode": part.nbytes / encode / 1e9,
        "decode": part.nbytes / decode / 1e9,
        "sum": 4 * part.nbytes / add / 1e9,
        "zlib speed": part.nbytes / compress / 1e9,
    }


def planes(x: np.ndarray) -> bytes:
    """Return the elements' bytes: all first ones, all second ones, and so on."""
    return np.ascontiguousarray(x.view(np.uint8).reshape(-1, x.itemsize).T).tobytes()
