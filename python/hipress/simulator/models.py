"""Gradients of well-known networks, and the time of their computation.

Sizes follow from the published architectures, layer by layer, in the order of the forward pass. A
test compares them with the totals in the SOSP 2021 paper's table of models. Arithmetic is counted
as 2 operations per multiplication and addition of convolutions and matrix products. The backward
pass costs twice the forward pass. Time is arithmetic divided by TFLOPS, which is an *assumption*
about one V100 with float32, not a measurement. Pass measured times with ``--compute-ms`` or in a
file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hipress.base import files

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


class _Net:
    """Builder that collects the layers of an architecture."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def conv(self, name: str, cin: int, cout: int, k: int, out: int, bias: bool = False) -> None:
        """Add a k x k convolution with an output of out x out."""
        flops = 2.0 * cin * cout * k * k * out * out
        self.layers.append(Layer(f"{name}_weight", cin * cout * k * k, flops))
        if bias:
            self.layers.append(Layer(f"{name}_bias", cout))

    def dense(self, name: str, nin: int, nout: int, bias: bool = True, times: int = 1) -> None:
        """Add a matrix product, applied ``times`` times per example (to each token)."""
        self.layers.append(Layer(f"{name}_weight", nin * nout, 2.0 * nin * nout * times))
        if bias:
            self.layers.append(Layer(f"{name}_bias", nout))

    def vectors(self, name: str, size: int, *parts: str) -> None:
        """Add the vectors of a normalization."""
        self.layers += [Layer(f"{name}_{part}", size) for part in parts]


def _vgg19() -> list[Layer]:
    net, cin, out, i = _Net(), 3, 224, 0
    for cout, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            net.conv(f"vgg0_conv{i}", cin, cout, 3, out, bias=True)
            cin, i = cout, i + 1
        out //= 2
    for i, (nin, nout) in enumerate(((25088, 4096), (4096, 4096), (4096, 1000))):
        net.dense(f"vgg0_dense{i}", nin, nout)
    return net.layers


def _resnet50() -> list[Layer]:
    net = _Net()

    def block(name: str, cin: int, cout: int, k: int, out: int) -> None:
        net.conv(name, cin, cout, k, out)
        net.vectors(f"{name}_bn", cout, "gamma", "beta")

    block("conv0", 3, 64, 7, 112)
    cin, out = 64, 56
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for unit in range(count):
            name = f"stage{stage}_unit{unit}"
            block(f"{name}_conv1", cin, width, 1, out)
            block(f"{name}_conv2", width, width, 3, out)
            block(f"{name}_conv3", width, 4 * width, 1, out)
            if unit == 0:
                block(f"{name}_downsample", cin, 4 * width, 1, out)
            cin = 4 * width
        out //= 2
    net.dense("dense0", 2048, 1000)
    return net.layers


def _bert(layers: int, width: int, tokens: int = 128, vocabulary: int = 30522) -> list[Layer]:
    net = _Net()
    # The word embedding is also the output's matrix. Its gradient is complete at the very end of
    # the backward pass, and its arithmetic is the output's.
    net.dense("word_embedding", vocabulary, width, bias=False, times=tokens * 15 // 100)
    net.layers += [Layer("position_embedding", 512 * width), Layer("type_embedding", 2 * width)]
    net.vectors("embedding_norm", width, "gamma", "beta")
    for i in range(layers):
        for part in ("query", "key", "value", "output"):
            net.dense(f"layer{i}_{part}", width, width, times=tokens)
        net.vectors(f"layer{i}_norm1", width, "gamma", "beta")
        net.dense(f"layer{i}_ffn1", width, 4 * width, times=tokens)
        net.dense(f"layer{i}_ffn2", 4 * width, width, times=tokens)
        net.vectors(f"layer{i}_norm2", width, "gamma", "beta")
    net.dense("pooler", width, width)
    net.dense("masked_dense", width, width, times=tokens * 15 // 100)
    net.vectors("masked_norm", width, "gamma", "beta")
    net.vectors("masked_output", vocabulary, "bias")
    net.dense("next_sentence", width, 2)
    return net.layers


def _lstm(vocabulary: int = 33278, width: int = 1500, steps: int = 35) -> list[Layer]:
    net = _Net()
    net.dense("embedding", vocabulary, width, bias=False, times=steps)  # tied to the output
    for i in range(2):
        for part in ("i2h", "h2h"):
            net.dense(f"lstm{i}_{part}", width, 4 * width, times=steps)
    net.vectors("decoder", vocabulary, "bias")
    return net.layers


def _transformer(vocabulary: int = 33712, width: int = 512, tokens: int = 32) -> list[Layer]:
    net = _Net()
    net.dense("embedding", vocabulary, width, bias=False, times=tokens)  # shared with the output
    for side, attentions in (("encoder", 1), ("decoder", 2)):
        for i in range(6):
            for a in range(attentions):
                for part in ("query", "key", "value", "output"):
                    net.dense(f"{side}{i}_att{a}_{part}", width, width, bias=False, times=tokens)
                net.vectors(f"{side}{i}_att{a}_norm", width, "gamma", "beta")
            net.dense(f"{side}{i}_ffn1", width, 4 * width, times=tokens)
            net.dense(f"{side}{i}_ffn2", 4 * width, width, times=tokens)
            net.vectors(f"{side}{i}_ffn_norm", width, "gamma", "beta")
        net.vectors(f"{side}_norm", width, "gamma", "beta")
    return net.layers


def _ugatit() -> list[Layer]:
    net = _Net()
    for side in ("A2B", "B2A"):
        g = f"gen{side}"
        net.conv(f"{g}_down0", 3, 64, 7, 256)
        net.conv(f"{g}_down1", 64, 128, 3, 128)
        net.conv(f"{g}_down2", 128, 256, 3, 64)
        for i in range(4):
            net.conv(f"{g}_block{i}_conv1", 256, 256, 3, 64)
            net.conv(f"{g}_block{i}_conv2", 256, 256, 3, 64)
        net.dense(f"{g}_gap", 256, 1, bias=False)
        net.dense(f"{g}_gmp", 256, 1, bias=False)
        net.conv(f"{g}_conv1x1", 512, 256, 1, 64, bias=True)
        net.dense(f"{g}_fc0", 64 * 64 * 256, 256, bias=False)
        for part in ("fc1", "gamma", "beta"):
            net.dense(f"{g}_{part}", 256, 256, bias=False)
        for i in range(4):
            for c in (1, 2):
                net.conv(f"{g}_up{i}_conv{c}", 256, 256, 3, 64)
                net.vectors(f"{g}_up{i}_norm{c}", 256, "rho")
        for i, (cin, cout, out) in enumerate(((256, 128, 128), (128, 64, 256))):
            net.conv(f"{g}_upsample{i}", cin, cout, 3, out)
            net.vectors(f"{g}_upsample{i}_norm", cout, "rho", "gamma", "beta")
        net.conv(f"{g}_out", 64, 3, 7, 256)
    for kind, depth in (("global", 7), ("local", 5)):
        for side in "AB":
            d, cin, cout, out = f"dis_{kind}{side}", 3, 64, 128
            for i in range(depth - 1):
                net.conv(f"{d}_conv{i}", cin, cout, 4, out, bias=True)
                cin, cout = cout, 2 * cout
                out = max(out // 2, 7)
            net.dense(f"{d}_gap", cin, 1, bias=False)
            net.dense(f"{d}_gmp", cin, 1, bias=False)
            net.conv(f"{d}_conv1x1", 2 * cin, cin, 1, out, bias=True)
            net.conv(f"{d}_out", cin, 1, 4, out)
    return net.layers


_MODELS: dict[str, tuple[Callable[[], list[Layer]], int, str]] = {
    "vgg19": (_vgg19, 32, "Simonyan and Zisserman 2014, configuration E; 224 x 224"),
    "resnet50": (_resnet50, 32, "He et al. 2015, version 1; 224 x 224"),
    "bert-base": (lambda: _bert(12, 768), 32, "Devlin et al. 2018; 128 tokens, 15% predicted"),
    "bert-large": (lambda: _bert(24, 1024), 32, "Devlin et al. 2018; 128 tokens, 15% predicted"),
    "lstm": (_lstm, 80, "Zaremba et al. 2014, large, tied; WikiText-2 vocabulary, 35 steps"),
    "transformer": (_transformer, 64, "Vaswani et al. 2017, base; 33,712 words, 32 tokens"),
    "ugatit": (_ugatit, 2, "Kim et al. 2020, full model (2 generators, 4 discriminators)"),
}


def names() -> list[str]:
    """Return the names of the built-in models."""
    return list(_MODELS)


def load(name: str, tflops: float | None = None) -> Model:
    """Return a built-in model, or that of a file of ``name,size[,forward_ms,backward_ms]``."""
    if name not in _MODELS:
        return _from_file(name)
    make, batch, source = _MODELS[name]
    layers = tuple(make())
    speed = 1e12 * (tflops or TFLOPS[name])
    forward = tuple(batch * layer.flops / speed for layer in layers)
    return Model(name, source, batch, layers, forward, tuple(2 * t for t in forward))


def _from_file(path: str) -> Model:
    if not Path(path).is_file():
        raise ValueError(
            f"the model must be one of {', '.join(_MODELS)} or a file of name,size"
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
