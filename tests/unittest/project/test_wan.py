"""Wide-area networks in user space: delay, rate, loss and order as requested, and nothing left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from harness import ROOT, netns, wan
from harness.processes import wait_until
from scripts import SCRIPTS
from test_netns import carries

needs_wan = pytest.mark.skipif(bool(wan.unavailable()), reason=wan.unavailable() or "can run")

ANSWERS = SCRIPTS / "wan" / "answer.py"
ASKS = SCRIPTS / "wan" / "ask.py"


def asked(network: wan.WideAreaNetwork, packets: int) -> tuple[float, int, int]:
    """Return the seconds of a round trip from node 0 to 1; of so many packets how many arrive, and
    how many of these after a later one."""
    answers = network.popen(1, [sys.executable, str(ANSWERS)], stdout=subprocess.PIPE, text=True)
    try:
        assert answers.stdout.readline() == "ready\n"
        command = network.command(0, [sys.executable, str(ASKS), network.address(1), str(packets)])
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        seconds, count, swapped = done.stdout.split()
        return float(seconds), int(count), int(swapped)
    finally:
        answers.kill()
        answers.wait()
        answers.stdout.close()


def test_descriptions_are_read():
    text = "rate=100mbit,delay=20ms,loss=0.1%,queue=64kb,seed=7;2:up=8mbit,queue=20ms"
    found = wan.Wan.read(text)
    assert found.link == wan.Link(12.5e6, 12.5e6, 0.02, 0.0, 0.001, 64e3, True)
    assert found.others == {2: wan.Link(1e6, 12.5e6, 0.02, 0.0, 0.001, 0.02, False)}
    assert (found.seed, found.mtu, found.reorder) == (7, 1500, False)
    # Twice as slow: half the rate, twice the delay, the same bytes in the queues.
    assert wan.Link(2e6, 1e6, 0.01, queue=0.1).line(2) == "1000000 500000 0.02 0 0 200000 100000"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed=1mbit", "'speed=1mbit' in a network's description: it is none of these; allowed"),
        ("rate=fast", "a rate is a number and one of"),
        ("loss=1", "a loss is a number from 0 to below 100 and %"),
        ("rate=1mbit;up=2mbit", "'up=2mbit' does not begin with a node"),
    ],
)
def test_wrong_descriptions_say_what_is_allowed(text, words):
    with pytest.raises(ValueError, match=words):
        wan.Wan.read(text)


def test_a_node_that_is_not_there_is_not_described():
    with pytest.raises(ValueError, match="there is no node 2 to describe: there are 2"):
        wan.WideAreaNetwork(2, "delay=1ms;2:up=1mbit")


@needs_wan
def test_delay_and_loss_are_those_asked_for():
    with wan.WideAreaNetwork(2, "delay=30ms,loss=5%;1:delay=10ms") as network:
        seconds, count, swapped = asked(network, 2000)
        assert 0.04 <= seconds < 0.06
        # 100 are lost in the mean, with a standard deviation of 10.
        assert 1840 < count < 1960 and swapped == 0
        sent = network.counts()[0]
        assert sent["lost"] >= 2000 - count and sent["sent"] >= 2000


@needs_wan
@pytest.mark.parametrize("order", ["", ",reorder"])
def test_jitter_reorders_only_if_asked_to(order):
    with wan.WideAreaNetwork(2, "delay=20ms,jitter=10ms" + order) as network:
        seconds, count, swapped = asked(network, 300)
        assert 0.02 <= seconds < 0.05 and count == 300
        assert (swapped > 30) == bool(order)


@needs_wan
def test_up_and_down_have_their_own_rates():
    links = "rate=800mbit,delay=1ms,loss=0.01%;0:up=40mbit,down=160mbit"
    with wan.WideAreaNetwork(2, links) as network:
        assert carries(network, 0, 1, 4 << 20, 30e6, 46e6)
        assert carries(network, 1, 0, 16 << 20, 100e6, 185e6)


@needs_wan
def test_a_queue_that_is_full_drops_packets():
    with wan.WideAreaNetwork(2, "rate=100kbit,queue=2kb") as network:
        _, count, _ = asked(network, 1000)  # 29 kB or more, in less than 2 s
        assert 20 < count < 800
        assert network.counts()[0]["dropped"] >= 1000 - count


@needs_wan
def test_segments_are_lost_one_by_one_and_what_arrives_is_right():
    with wan.WideAreaNetwork(2, "rate=400mbit,delay=2ms,loss=1%") as network:
        command = [sys.executable, str(SCRIPTS / "wan" / "stream.py")]
        reader = network.popen(1, command, stdout=subprocess.PIPE, text=True)
        assert reader.stdout.readline() == "ready\n"
        writer = network.popen(0, [*command, network.address(1)])
        assert reader.communicate(timeout=60)[0] == "True\n"
        assert writer.wait(timeout=10) == 0
        counts = network.counts()[0]
        # 10 MB are 6,934 segments of 1,448 bytes, and what is sent again.
        assert 6934 <= counts["sent"] < 12000
        assert 0.004 < counts["lost"] / counts["sent"] < 0.02


@needs_wan
def test_a_cut_is_told_to_nobody_and_mended():
    with wan.WideAreaNetwork(2, "delay=1ms") as network:
        network.cut(1)
        before = network.counts()[1]["delivered"]
        command = network.command(0, [sys.executable, str(ASKS), network.address(1), "-1"])
        subprocess.run(command, check=True, timeout=30)
        assert network.counts()[1]["delivered"] == before
        network.mend(1)
        assert asked(network, 10)[1] == 10


@needs_wan
def test_router_and_namespaces_of_a_killed_maker_go():
    script = SCRIPTS / "wan" / "maker.py"
    maker = subprocess.Popen(
        [sys.executable, str(script), str(ROOT)], stdout=subprocess.PIPE, text=True
    )
    name, router = maker.stdout.readline().split()
    assert name in netns._namespaces()
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    wait_until(lambda: not os.path.exists(f"/proc/{router}/exe"), 10, "the router's end")
    deadline = time.monotonic() + 5
    while name in netns._namespaces() and time.monotonic() < deadline:
        netns.remove_stale()
    assert name not in netns._namespaces()
