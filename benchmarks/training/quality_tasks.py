"""The six tasks of quality.py: real data, with a usual model and optimizer for each.

Digits are scikit-learn's scans, text is the Python language reference, as in examples/torch. Test
data were not used for training: scans of other handwriting, and the last tenth of the text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import digits
import models
import text

Batch = tuple[torch.Tensor, torch.Tensor]
"""Inputs, and classes: int64[n], or [n, m] for texts."""
MOMENTUM = 0.9  # of SGD
SIDE = 32  # of images in which digits are scattered
NOISE = 0.5  # standard deviation, in that of a scan's pixels
PLACES = 8  # places at which each test scan is shown
BEFORE = 8  # characters from which logistic regression predicts the next one
TEST_TEXTS = 512


@dataclass
class Task:
    """Model, data and optimizer of a task."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batch: Callable[[int, torch.Generator], Batch]
    """Function that returns so many random training samples."""
    test: Batch


def logistic() -> Task:
    """Return multinomial logistic regression of the next character from those before it; SGD."""
    data = text.Text()
    characters = len(data.characters)

    def split(texts: torch.Tensor) -> Batch:
        seen = texts.unfold(1, BEFORE + 1, 1)
        return F.one_hot(seen[..., :-1], characters).flatten(2).float(), seen[..., -1]

    model = nn.Linear(BEFORE * characters, characters)
    return _of_text(data, model, _sgd(model, 1.0), split)


def lstm() -> Task:
    """Return the LSTM of the text example; SGD."""
    data = text.Text()
    model = text.make("lstm", len(data.characters), width=96, layers=2)
    return _of_text(data, model, _sgd(model, 0.5), _next_characters)


def gpt() -> Task:
    """Return the GPT of the text example; AdamW."""
    data = text.Text()
    model = text.make("gpt", len(data.characters), width=128, layers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    return _of_text(data, model, optimizer, _next_characters)


def cnn() -> Task:
    """Return the CNN of the digits example on unmodified scans; AdamW."""
    train, test = digits.load()
    model = models.small_cnn()

    def batch(size: int, generator: torch.Generator) -> Batch:
        return _drawn(train, size, generator)

    return Task(model, torch.optim.AdamW(model.parameters(), lr=1e-3), batch, test)


def resnet() -> Task:
    """Return a network of ResNet50's blocks, which finds digits in noise; SGD."""
    blocks, channels = [], 32
    for inner, stride in ((64, 2), (128, 2), (128, 1)):
        blocks.append(models.Bottleneck(channels, inner, stride))
        channels = 4 * inner
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, 10),
    )
    return _of_scattered(model, 0.05)


def vgg() -> Task:
    """Return VGG11 with batch normalization and a quarter of its channels, and SGD."""
    model = models.vgg(SIDE, 10, 256, 0.25, models.VGG11, batch_norm=True)
    for module in model:
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # dropout would need several times as many steps
    return _of_scattered(model, 0.02)


def _sgd(model: nn.Module, rate: float, decay: float = 0.0) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), rate, MOMENTUM, weight_decay=decay)


def _next_characters(texts: torch.Tensor) -> Batch:
    return texts[:, :-1], texts[:, 1:]


def _of_text(
    data: text.Text,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    split: Callable[[torch.Tensor], Batch],
) -> Task:
    test = split(data.batch(TEST_TEXTS, torch.Generator().manual_seed(5), test=True))
    return Task(model, optimizer, lambda size, of: split(data.batch(size, of)), test)


def _of_scattered(model: nn.Module, rate: float) -> Task:
    train, (images, labels) = digits.load()

    def batch(size: int, generator: torch.Generator) -> Batch:
        scans, classes = _drawn(train, size, generator)
        return scattered(scans, generator), classes

    places = scattered(images.repeat(PLACES, 1, 1, 1), torch.Generator().manual_seed(5))
    return Task(model, _sgd(model, rate, 1e-4), batch, (places, labels.repeat(PLACES)))


def _drawn(data: Batch, size: int, generator: torch.Generator) -> Batch:
    rows = torch.randint(len(data[1]), (size,), generator=generator)
    return data[0][rows], data[1][rows]


def scattered(scans: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the scans in noise, each twice as large, at a random place and of a random color.

    Args:
        scans: float32[n, 1, 8, 8].

    Returns:
        float32[n, 3, SIDE, SIDE].
    """
    count = len(scans)
    marks = F.interpolate(scans - scans.min(), scale_factor=2.0)
    colors = 0.25 + 0.75 * torch.rand(count, 3, 1, 1, generator=generator)
    images = NOISE * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    side = marks.shape[-1]
    corners = torch.randint(SIDE - side + 1, (count, 2), generator=generator)
    for image, mark, (y, x) in zip(images, marks * colors, corners.tolist()):
        image[:, y : y + side, x : x + side] += mark
    return images
