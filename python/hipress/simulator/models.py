"""Gradients of well-known networks, and the time of their computation.

The files in ``data`` list sizes and arithmetic, which follow from the published architectures,
layer by layer, in the order of the forward pass. A test compares them with the totals in the SOSP
2021 paper's table of models. Arithmetic is counted as 2 operations per multiplication and addition
of convolutions and matrix products. The backward pass costs twice the forward pass. Time is
arithmetic divided by TFLOPS, which is an *assumption* about one V100 with float32, not a
measurement. Pass measured times with ``--compute-ms`` or in a file.

A matrix that is both embedding and output is one gradient, at the place of the embedding: it is
complete at the very end of the backward pass, and its arithmetic is the output's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from hipress.base import files

_DATA = Path(__file__).parent / "data"
TFLOPS = {
    # 15.7 is a V100's float32 peak. 3x3 convolutions exceed it, because Winograd's algorithm saves
    # multiplications. Recurrent networks are bound by memory. A step of UGATIT runs each of its
    # generators four times, which its speed includes.
    "vgg19": 20.0,
    "resnet50": 9.0,
    "bert-base": 11.0,
    "bert-large": 11.0,
    "transformer": 8.0,
    "lstm": 7.0,
    "ugatit": 3.0,
}
"""Assumed arithmetic speed of one V100 in float32, in 10^12 operations per second."""


@dataclass(frozen=True)
class Layer:
    """Gradient of a layer: name, float32 elements, and forward operations per example."""

    name: str
    size: int
    flops: float = 0.0


@dataclass(frozen=True)
class Model:
    """Gradients of a network in forward order, with seconds of one device's computation."""

    name: str
    source: str
    batch: int
    """Examples per device and step."""
    layers: tuple[Layer, ...]
    forward: tuple[float, ...]
    """Seconds of the forward pass of each layer."""
    backward: tuple[float, ...]
    """Seconds of the backward pass of each layer."""

    @property
    def elements(self) -> int:
        """Number of float32 elements of all gradients."""
        return sum(layer.size for layer in self.layers)

    def with_compute(self, seconds: float) -> Model:
        """Return the same model with another total time of forward and backward pass."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"the passes must take 0 seconds or more, not {seconds}")
        old = sum(self.forward) + sum(self.backward)
        if old == 0:
            raise ValueError(f"{self.source} says no times of layers, so none can be scaled")
        scale = seconds / old
        return replace(
            self,
            forward=tuple(t * scale for t in self.forward),
            backward=tuple(t * scale for t in self.backward),
        )


_BUILT_IN = {
    "vgg19": (32, "Simonyan and Zisserman 2014, configuration E; 224 x 224"),
    "resnet50": (32, "He et al. 2015, version 1; 224 x 224"),
    "bert-base": (32, "Devlin et al. 2018; 128 tokens, 15% predicted"),
    "bert-large": (32, "Devlin et al. 2018; 128 tokens, 15% predicted"),
    "lstm": (80, "Zaremba et al. 2014, large, tied; WikiText-2 vocabulary, 35 steps"),
    "transformer": (64, "Vaswani et al. 2017, base; 33,712 words, 32 tokens"),
    "ugatit": (2, "Kim et al. 2020, full model (2 generators, 4 discriminators)"),
}
"""Batch and source of each built-in model."""


def names() -> list[str]:
    """Return the names of the built-in models."""
    return list(_BUILT_IN)


def load(name: str) -> Model:
    """Return a built-in model, or that of a file of ``name,size[,forward_ms,backward_ms]``."""
    if name not in _BUILT_IN:
        return _from_file(name)
    batch, source = _BUILT_IN[name]
    lines = (_DATA / f"{name}.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    layers = tuple(Layer(layer, int(size), float(flops)) for layer, size, flops in rows)
    forward = tuple(batch * layer.flops / (1e12 * TFLOPS[name]) for layer in layers)
    return Model(name, source, batch, layers, forward, tuple(2 * t for t in forward))


def _from_file(path: str) -> Model:
    if not Path(path).is_file():
        raise ValueError(
            f"the model must be one of {', '.join(_BUILT_IN)} or a file of name,size"
            f"[,forward_ms,backward_ms] lines, not {path!r}"
        )
    layers: list[Layer] = []
    forward: list[float] = []
    backward: list[float] = []
    for number, line in enumerate(files.read(path, "model").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(",")]
        try:
            if len(fields) not in (2, 4) or int(fields[1]) < 1:
                raise ValueError
            times = [float(field) for field in fields[2:]] or [0.0, 0.0]
            if not all(0 <= milliseconds < math.inf for milliseconds in times):
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{path}, line {number}: expected name,size or name,size,forward_ms,backward_ms "
                f"with a size of at least 1 and finite times, got {line.strip()!r}"
            ) from None
        layers.append(Layer(fields[0], int(fields[1])))
        forward.append(times[0] / 1e3)
        backward.append(times[1] / 1e3)
    if not layers:
        raise ValueError(f"{path}: the file holds no gradient")
    return Model(Path(path).stem, f"file {path}", 1, tuple(layers), tuple(forward), tuple(backward))
