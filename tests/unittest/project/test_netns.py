"""The shaped network of benchmarks and tests: real bandwidth, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from harness import ROOT, netns
from harness.marks import needs_namespaces as needs_root
from scripts import SCRIPTS


def test_rates_are_read():
    assert netns.bits_per_second("1gbit") == 1e9
    assert netns.bits_per_second("2.5Mbit") == 2.5e6
    with pytest.raises(ValueError, match="allowed are a number"):
        netns.bits_per_second("fast")


def test_node_count_is_checked():
    with pytest.raises(ValueError, match="nodes is 0; allowed are 1 to 250"):
        netns.ShapedNetwork(0)


def test_dilation_is_checked():
    for wrong in (0, 0.5, float("nan")):
        with pytest.raises(ValueError, match="allowed are 1 and more"):
            netns.ShapedNetwork(2, dilation=wrong)


def carries(network, source, target, size, least, most):
    """Return whether a link's rate is within bounds. A busy machine may measure it wrongly, not
    often."""
    return any(least < network.measure(source, target, size) < most for _ in range(5))


@needs_root
def test_both_directions_are_shaped_and_everything_is_removed():
    with netns.ShapedNetwork(2, rate="200mbit") as network:
        names = [network.namespace(node) for node in range(2)]
        assert set(names) <= set(netns._namespaces())
        for source, target in ((0, 1), (1, 0)):
            assert carries(network, source, target, 10 << 20, 150e6, 240e6)
        sleeper = network.popen(0, ["sleep", "60"])
    assert sleeper.wait(timeout=5) == -signal.SIGKILL
    assert not [name for name in netns._namespaces() if name.startswith(network._id + "-")]


@needs_root
def test_dilated_links_are_slower_by_this_machines_clock_only():
    with netns.ShapedNetwork(2, rate="800mbit", dilation=4) as network:
        assert 640e6 < network.measured_bits_per_second < 920e6
        assert carries(network, 0, 1, 10 << 20, 150e6, 240e6)
        assert network.seconds(2.0) == 0.5


@needs_root
def test_an_exception_inside_removes_the_namespaces():
    with pytest.raises(KeyError):
        with netns.ShapedNetwork(2, rate=None) as network:
            raise KeyError("inside")
    assert not [name for name in netns._namespaces() if name.startswith(network._id + "-")]


@needs_root
def test_namespaces_of_a_killed_maker_are_removed_by_the_next_one():
    script = SCRIPTS / "netns_maker.py"
    maker = subprocess.Popen(
        [sys.executable, str(script), str(ROOT)], stdout=subprocess.PIPE, text=True
    )
    name = maker.stdout.readline().strip()
    assert name in netns._namespaces()
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    deadline = time.monotonic() + 5
    while name in netns._namespaces() and time.monotonic() < deadline:
        netns.remove_stale()
    assert name not in netns._namespaces()
