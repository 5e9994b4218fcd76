"""Template of a front end: it trains, and its workers end with the same bits."""

from __future__ import annotations

import re
import sys

import pytest

from harness import ROOT
from harness.launch import run

SCRIPT = ROOT / "examples" / "frontend_template" / "train.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "how",
    [
        "-n 2 -s 1 -- none",
        "-n 2 -s 1 -- onebit",
        "-n 3 --topo ring -- maxmin",
    ],
)
def test_it_trains(how: str):
    pytest.importorskip("sklearn")
    options, _, kind = how.partition(" -- ")
    launch = run([*options.split(), "--timeout", "100", sys.executable, str(SCRIPT), kind])
    output = launch.out + launch.err
    assert launch.process.returncode == 0, output
    found = re.findall(r"accuracy (\d\.\d+), weights (\w+)", launch.out)
    assert len(found) == int(options.split()[1]), output
    assert min(float(accuracy) for accuracy, _ in found) > 0.85, output
    assert len({weights for _, weights in found}) == 1, output


def test_a_type_that_does_not_exist_is_one_sentence():
    pytest.importorskip("sklearn")
    launch = run(["-n", "1", "-s", "1", "--timeout", "60", sys.executable, str(SCRIPT), "onebyte"])
    assert launch.process.returncode != 0
    assert "onebyte" in launch.out + launch.err
