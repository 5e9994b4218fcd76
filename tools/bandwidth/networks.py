"""Shapes of the trainable parameters of well-known networks, layer by layer from the input.

Sources, and the totals that they publish:
  resnet50   He et al., "Deep Residual Learning" (2015), version 1 with a 1000-class output, as in
             torchvision and Gluon's model zoo: 25,557,032 (batch-norm scales and shifts included).
  vgg19      Simonyan and Zisserman, configuration E (2014), no batch norm: 143,667,240.
  lstm       Zaremba et al., "Recurrent Neural Network Regularization" (2014), the large model for
             Penn Treebank: 2 layers of 1500 units, 10,000 words: 66 million. With MXNet's two bias
             vectors per layer: 66,034,000.
  bert-base  Devlin et al. (2018), BERT-base uncased with its pooler: 109,482,240 ("110M").
"""

from __future__ import annotations

from math import prod

Shape = tuple[int, ...]


def _resnet50() -> list[Shape]:
    def convolution(out: int, into: int, size: int) -> list[Shape]:
        return [(out, into, size, size), (out,), (out,)]  # weight, batch norm's scale and shift

    shapes = convolution(64, 3, 7)
    into = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            shapes += convolution(width, into, 1) + convolution(width, width, 3)
            shapes += convolution(4 * width, width, 1)
            if block == 0:
                shapes += convolution(4 * width, into, 1)  # the shortcut's projection
            into = 4 * width
    return shapes + [(1000, 2048), (1000,)]


def _vgg19() -> list[Shape]:
    shapes: list[Shape] = []
    into = 3
    for count, width in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(count):
            shapes += [(width, into, 3, 3), (width,)]
            into = width
    for out, inputs in ((4096, 512 * 7 * 7), (4096, 4096), (1000, 4096)):
        shapes += [(out, inputs), (out,)]
    return shapes


def _lstm() -> list[Shape]:
    words, units = 10_000, 1500
    layer: list[Shape] = [(4 * units, units), (4 * units, units), (4 * units,), (4 * units,)]
    return [(words, units), *layer, *layer, (words, units), (words,)]


def _bert_base() -> list[Shape]:
    hidden, inner = 768, 3072
    norm: list[Shape] = [(hidden,), (hidden,)]
    square: list[Shape] = [(hidden, hidden), (hidden,)]
    layer = square * 4 + norm + [(inner, hidden), (inner,), (hidden, inner), (hidden,)] + norm
    return [(30_522, hidden), (512, hidden), (2, hidden)] + norm + layer * 12 + square


NETWORKS = {
    "resnet50": _resnet50,
    "vgg19": _vgg19,
    "lstm": _lstm,
    "bert-base": _bert_base,
}


def shapes(network: str, scale: float = 1.0) -> list[Shape]:
    """Return the shapes of a network's parameters.

    Args:
        network: a name in NETWORKS.
        scale: multiplies every first dimension (at least 1 remains), to fit a small machine.

    Raises:
        ValueError: unknown network, or a scale not in (0, 1].
    """
    if network not in NETWORKS:
        raise ValueError(f"network is {network!r}; allowed are {', '.join(NETWORKS)}")
    if not 0 < scale <= 1:
        raise ValueError(f"scale is {scale}; allowed are numbers above 0, up to 1")
    return [(max(1, round(first * scale)), *rest) for first, *rest in NETWORKS[network]()]


def elements(shapes: list[Shape]) -> int:
    """Return the number of elements of all shapes together."""
    return sum(prod(shape) for shape in shapes)
