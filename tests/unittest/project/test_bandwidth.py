"""Networks of the bandwidth tool, with the parameter counts that their sources publish."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "bandwidth"))

import networks  # noqa: E402


@pytest.mark.parametrize(
    ("name", "total", "arrays"),
    [
        ("resnet50", 25_557_032, 161),
        ("vgg19", 143_667_240, 38),
        ("lstm", 66_034_000, 11),
        ("bert-base", 109_482_240, 199),
    ],
)
def test_totals_are_the_published_ones(name, total, arrays):
    shapes = networks.shapes(name)
    assert networks.elements(shapes) == total
    assert len(shapes) == arrays


def test_vgg19_is_in_layer_order():
    weights = [networks.elements([shape]) for shape in networks.shapes("vgg19")[::2]]
    assert weights[:5] == [1728, 36864, 73728, 147456, 294912]
    assert weights[-3:] == [102_760_448, 16_777_216, 4_096_000]


def test_scaling_keeps_every_array():
    full, small = networks.shapes("bert-base"), networks.shapes("bert-base", 0.1)
    assert len(full) == len(small)
    assert all(a[1:] == b[1:] and b[0] >= 1 for a, b in zip(full, small))
    ratio = networks.elements(small) / networks.elements(full)
    assert ratio == pytest.approx(0.1, rel=0.01)


def test_bad_arguments_say_what_is_allowed():
    with pytest.raises(ValueError, match="allowed are resnet50, vgg19, lstm, bert-base"):
        networks.shapes("alexnet")
    with pytest.raises(ValueError, match="scale is 0; allowed are numbers above 0, up to 1"):
        networks.shapes("lstm", 0)
