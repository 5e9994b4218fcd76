"""Networks of the examples, from torch.nn alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

VGG11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")
VGG19 = (64, 64, "M", 128, 128, "M", 256, 256, 256, 256, "M")
VGG19 += (512, 512, 512, 512, "M", 512, 512, 512, 512, "M")


def small_cnn() -> nn.Module:
    """Return a CNN for 8x8 gray images: 3 convolutions, 2 dense layers, 161,974 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 116),
        nn.ReLU(),
        nn.Linear(116, 10),
    )


def vgg(
    image_size: int = 224,
    classes: int = 1000,
    hidden: int = 4096,
    width: float = 1.0,
    plan: Sequence[int | str] = VGG19,
    batch_norm: bool = False,
) -> nn.Module:
    """Return VGG19 (Simonyan and Zisserman 2015), by default with its 143,667,240 weights.

    Args:
        hidden: Size of the dense layers.
        width: Factor of the convolutions' channels.
        plan: The convolutions' channels, and "M" where the image is halved; or VGG11.
        batch_norm: Whether normalization follows each convolution, so that it learns from any
            initial weights.
    """
    layers: list[nn.Module] = []
    channels = 3
    for item in plan:
        if item == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            out = max(1, int(item * width))
            layers.append(nn.Conv2d(channels, out, 3, padding=1))
            layers += [nn.BatchNorm2d(out)] if batch_norm else []
            layers.append(nn.ReLU(inplace=True))
            channels = out
    side = image_size // 32
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(channels * side * side, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(hidden, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(hidden, classes),
    )


class Bottleneck(nn.Module):
    """ResNet's block of 1x1, 3x3 and 1x1 convolutions with a shortcut."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        out = 4 * inner
        self.body = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def resnet50(classes: int = 1000) -> nn.Module:
    """Return ResNet50 (He et al. 2016, version 1.5), 25,557,032 weights."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for inner, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, inner, stride if block == 0 else 1))
            channels = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))


class CharLstm(nn.Module):
    """Two LSTM layers over embedded characters."""

    def __init__(self, vocabulary: int, hidden: int = 192) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 64)
        self.lstm = nn.LSTM(64, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(text))[0])


class Block(nn.Module):
    """Transformer block: causal attention and a feed-forward layer, each after a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    """Small GPT-2 over characters."""

    def __init__(
        self, vocabulary: int, width: int = 192, layers: int = 4, heads: int = 6, context: int = 64
    ) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                last = name.endswith(("out.weight", "feed.2.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if last else 0.02)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.embed(text) + self.place(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))
