"""Peers on one thread: the same operations in NumPy, torch, and formulas of GRACE and hivemind.

The formulas are a few lines of torch each, after the projects' published code; they are not the
projects themselves. Each takes a float32 tensor and returns the payload's tensors.

As a program it is the process in which speed.py measures them, with an allocator that keeps memory.
Otherwise glibc returns large tensors to the kernel after each run, and the kernel's page faults are
timed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.common.timing import best_seconds, options, report

THRESHOLD = np.float32(0.5)


def numpy_two_bit(gradient: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Encode 2bit as one writes it in NumPy."""
    residual += gradient
    high, low = residual >= THRESHOLD, residual <= -THRESHOLD
    residual -= THRESHOLD * high
    residual += THRESHOLD * low
    bits = np.empty((gradient.size, 2), bool)
    bits[:, 0] = high | low
    bits[:, 1] = high
    return np.packbits(bits)


def numpy_onebit(gradient: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Encode onebit as one writes it in NumPy."""
    residual += gradient
    bits = residual >= 0
    above, below = residual[bits].mean(), residual[~bits].mean()
    residual -= np.where(bits, above, below)
    return np.packbits(bits)


def grace_onebit(torch, x):
    mask = x < 0
    below = x[mask].sum() / mask.sum()
    above = x[~mask].sum() / (~mask).sum()
    return mask.type(torch.uint8), below, above


def grace_terngrad(torch, x):
    scale = torch.max(torch.abs(x))
    sign = x.sign() * scale
    keep = torch.rand_like(x) >= 1 - x.abs() / scale
    return (sign * keep).sign().type(torch.int8), scale


def grace_qsgd(torch, x, levels=255):
    norm = x.norm()
    level = levels / norm * x.abs()
    floor = level.floor()
    up = (torch.empty_like(x).uniform_() < level - floor).type(torch.float32)
    return ((floor + up) * x.sign()).type(torch.int16), norm


def grace_topk(torch, x, ratio):
    _, index = torch.topk(x.abs(), max(1, int(x.numel() * ratio)), sorted=False)
    return torch.gather(x, 0, index), index


def grace_dgc(torch, x, ratio):
    sample = x.abs()[torch.randint(0, x.numel(), (max(1, int(x.numel() * 0.01)),))]
    threshold = torch.topk(sample, max(1, int(sample.numel() * ratio)))[0].min()
    index = (x.abs() >= threshold).nonzero().view(-1)
    return x[index], index


def hivemind_uniform(torch, x):
    """Return Uniform8BitQuantization: codes around the mean, and the mean of each code's values."""
    mean = x.mean()
    centered = x - mean
    sigma = torch.norm(centered) / (x.numel() ** 0.5)
    scale = 6 * sigma / 256
    codes = torch.clamp((centered / scale).round() + 128, 0, 255).long()
    sums = torch.zeros(256).scatter_add_(0, codes, x)
    counts = torch.zeros(256).scatter_add_(0, codes, torch.ones_like(x))
    return codes.type(torch.uint8), sums / counts.clamp_min(1)


def torch_quantizer(torch, x):
    """Return terngrad's quantization: find the range, then quantize."""
    low, high = (float(value) for value in torch.aminmax(x))
    scale = (high - low) / 255
    return torch.quantize_per_tensor(x, scale, round(-low / scale), torch.quint8)


def runs(elements: int) -> list[tuple[str, str, str, str, float | None, Callable[[], object]]]:
    """Return the rows: peer, our codec, our operation, its operation, required ratio, function."""
    gradient = np.random.default_rng(1).normal(0, 0.5, elements).astype(np.float32)
    residual = np.zeros_like(gradient)
    found: list = [
        (
            "NumPy",
            "2bit",
            "encode",
            "2bit, error feedback",
            None,
            lambda: numpy_two_bit(gradient, residual),
        ),
        (
            "NumPy",
            "onebit",
            "encode",
            "onebit, error feedback",
            30,
            lambda: numpy_onebit(gradient, residual),
        ),
    ]
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(1)
    x = torch.from_numpy(gradient)
    k = [max(1, elements // 1000), max(1, elements // 100)]
    half = {
        name: torch.empty(elements, dtype=getattr(torch, name)) for name in ("float16", "bfloat16")
    }
    scale = float(x.max() - x.min()) / 255
    return [
        *found,
        ("torch", "topk, 0.1%", "encode", "topk(|x|, 0.1%)", 20, lambda: torch.topk(x.abs(), k[0])),
        ("torch", "dgc, 0.1%", "encode", "topk(|x|, 0.1%)", 20, lambda: torch.topk(x.abs(), k[0])),
        ("torch", "dgc, 1%", "encode", "topk(|x|, 1%)", 20, lambda: torch.topk(x.abs(), k[1])),
        ("GRACE's formula", "onebit", "encode", "onebit", 5, lambda: grace_onebit(torch, x)),
        (
            "GRACE's formula",
            "terngrad, 2 bits",
            "encode",
            "terngrad",
            5,
            lambda: grace_terngrad(torch, x),
        ),
        (
            "GRACE's formula",
            "terngrad, 8 bits",
            "encode",
            "qsgd, 255 levels",
            5,
            lambda: grace_qsgd(torch, x),
        ),
        (
            "GRACE's formula",
            "topk, 0.1%",
            "encode",
            "topk, 0.1%",
            5,
            lambda: grace_topk(torch, x, 0.001),
        ),
        (
            "GRACE's formula",
            "graddrop, 1%",
            "encode",
            "dgc, 1%",
            5,
            lambda: grace_dgc(torch, x, 0.01),
        ),
        (
            "hivemind's formula",
            "terngrad, 8 bits",
            "encode",
            "uniform 8 bit",
            10,
            lambda: hivemind_uniform(torch, x),
        ),
        (
            "torch",
            "terngrad, 8 bits, nearest",
            "encode",
            "aminmax, then quantize_per_tensor",
            1,
            lambda: torch_quantizer(torch, x),
        ),
        (
            "torch",
            "terngrad, 8 bits, nearest",
            "encode",
            "quantize_per_tensor, range given",
            None,
            lambda: torch.quantize_per_tensor(x, scale, 128, torch.quint8),
        ),
        ("torch", "fp16", "encode", "copy to float16", 1, lambda: half["float16"].copy_(x)),
        ("torch", "bf16", "encode", "copy to bfloat16", 1, lambda: half["bfloat16"].copy_(x)),
    ]


def main() -> None:
    given = options(elements=65536, seconds=0.3)
    report(
        rows=[
            {
                "kernels": peer,
                "codec": codec,
                "operation": operation,
                "what": what,
                "wanted": wanted,
                "elements": given.elements,
                "gb_per_s": given.elements * 4e-9 / best_seconds(run, given.seconds),
            }
            for peer, codec, operation, what, wanted, run in runs(given.elements)
        ]
    )


if __name__ == "__main__":
    main()
