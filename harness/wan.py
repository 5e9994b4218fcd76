"""Wide-area networks on one machine: links with a rate, delay, jitter and loss, up and down.

Every node is a network namespace, as in :mod:`harness.netns`, whose ``eth0`` is a TUN device. One
router process in user space (``wan_router.cc``, which `make native-tests` builds) carries packets
between them. It therefore needs no kernel with netem. It carries some Gbit/s on one core.

>>> with WideAreaNetwork(4, "rate=100mbit,delay=20ms,loss=0.1%") as network:
...     network.popen(0, ["python", "server.py"])
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness import ROOT
from harness.netns import NetworkError, ShapedNetwork, _run, available
from hipress.base import units

ROUTER = ROOT / "build" / "wan_router"
SPEC = (
    "rate=RATE or up=RATE,down=RATE; delay=TIME, jitter=TIME, loss=PERCENT%, "
    "queue=TIME or BYTESkb, seed=NUMBER, mtu=BYTES, reorder; separated by commas; "
    "and for a node that differs, ;NODE:..."
)


@dataclass(frozen=True)
class Link:
    """Link of a node. A path's delay, jitter and loss are the means of those of its two ends.

    Attributes:
        up: Bytes per second that leave the node; 0: no limit.
        down: Bytes per second that reach the node; 0: no limit.
        delay: Seconds, one way. A round trip takes twice as long.
        jitter: Seconds by which the delay varies at random.
        loss: Probability, in [0, 1), that a packet is lost.
        queue: Size of the queues at both ends of the link, in seconds at its rate or in bytes.
    """

    up: float = 0.0
    down: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    queue: float = 0.1
    queue_in_bytes: bool = False

    def line(self, dilation: float) -> str:
        """Return the router's description of the link, in this machine's time."""
        queues = [self.queue * (1 if self.queue_in_bytes else r) for r in (self.up, self.down)]
        values = [
            self.up / dilation,
            self.down / dilation,
            self.delay * dilation,
            self.jitter * dilation,
            self.loss,
            *queues,
        ]
        return " ".join(f"{value:.12g}" for value in values)


@dataclass(frozen=True)
class Wan:
    """Parsed description of a network, like ``"rate=100mbit,delay=20ms;3:up=10mbit"``."""

    link: Link
    others: Mapping[int, Link]
    """Links of nodes that differ, by node."""
    seed: int = 1
    """Seed of losses and jitter."""
    mtu: int = 1500
    reorder: bool = False
    """Whether jitter lets packets of a path overtake each other."""

    @classmethod
    def read(cls, text: str) -> Wan:
        """Parse a description.

        Raises:
            ValueError: If it is malformed. The message lists what is allowed.
        """
        first, *rest = text.split(";")
        whole: dict[str, object] = {}
        link = _link(first, Link(), whole)
        others = {}
        for part in rest:
            node, colon, changes = part.partition(":")
            if not (colon and node.strip().isdigit()):
                raise ValueError(f"{part!r} does not begin with a node, as in 3:up=1mbit")
            others[int(node)] = _link(changes, link, {})
        return cls(link, others, **whole)


def _link(text: str, link: Link, whole: dict[str, object]) -> Link:
    """Return the link with changes. Settings of the whole network go into ``whole``."""
    changes: dict[str, object] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, _, value = word.partition("=")
        try:
            if name == "rate":
                changes["up"] = changes["down"] = units.rate(value)
            elif name in ("up", "down"):
                changes[name] = units.rate(value)
            elif name in ("delay", "jitter"):
                changes[name] = units.seconds(value)
            elif name == "loss":
                changes[name] = _percent(value)
            elif name == "queue":
                size = re.fullmatch(r"(\d+)([km]?)b", value)
                changes["queue_in_bytes"] = size is not None
                scale = {"": 1, "k": 1e3, "m": 1e6}
                changes[name] = int(size[1]) * scale[size[2]] if size else units.seconds(value)
            elif name in ("seed", "mtu") and value.isdigit():
                whole[name] = int(value)
            elif word == "reorder":
                whole[name] = True
            else:
                raise ValueError("it is none of these")
        except ValueError as error:
            text = f"{word!r} in a network's description: {error}; allowed are {SPEC}"
            raise ValueError(text) from None
    return replace(link, **changes)


def _percent(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?%", text) or float(text[:-1]) >= 100:
        raise ValueError("a loss is a number from 0 to below 100 and %")
    return float(text[:-1]) / 100


class WideAreaNetwork(ShapedNetwork):
    """Context manager with `nodes` namespaces and a router between them.

    Args:
        nodes: Number of namespaces, 1 to 250.
        wan: A :class:`Wan`, or its text.
        dilation: As for ShapedNetwork: rates are divided by it, delays multiplied.
    """

    def __init__(self, nodes: int, wan: Wan | str, dilation: float = 1.0) -> None:
        self.wan = Wan.read(wan) if isinstance(wan, str) else wan
        super().__init__(nodes, None, verify=False, dilation=dilation)
        if missing := [node for node in self.wan.others if node >= nodes]:
            raise ValueError(f"there is no node {missing[0]} to describe: there are {nodes}")
        self._router: subprocess.Popen | None = None

    def link(self, node: int) -> Link:
        """Return a node's link, in dilated time."""
        return self.wan.others.get(node, self.wan.link)

    def cut(self, node: int) -> None:
        """Disconnect this node: no packet passes, and neither end is notified."""
        self._ask(f"cut {node}", 1)

    def mend(self, node: int) -> None:
        """Connect a node again."""
        self._ask(f"mend {node}", 1)

    def counts(self) -> list[dict[str, int]]:
        """Return packets so far, by node.

        They are: sent by it, and of these lost; dropped by its full queues; delivered to it.
        """
        names = ("sent", "lost", "dropped", "delivered")
        lines = self._ask("stats", self.nodes)
        return [dict(zip(names, map(int, line.split()))) for line in lines]

    def allow_buffers(self, size: int) -> None:
        """Let TCP's buffers grow to so many bytes, as a node's administrator may."""
        for node in range(self.nodes):
            for kind in ("wmem", "rmem"):
                setting = f"net.ipv4.tcp_{kind}=4096 131072 {size}"
                _run(*self.command(node, ["sysctl", "-q", "-w", setting]))

    def close(self) -> None:
        """End the router, kill all processes in the namespaces and remove these. Idempotent."""
        super().close()
        if self._router is not None:
            self._router.kill()
            self._router.wait()
            self._router.stdin.close()
            self._router.stdout.close()
            self._router = None

    def _build(self) -> None:
        if not ROUTER.exists():
            raise NetworkError(f"there is no {ROUTER}: `make native-tests` builds it")
        lines = [f"{self.wan.seed} {int(self.wan.reorder)}"]
        for node in range(self.nodes):
            _run("ip", "netns", "add", self.namespace(node))
            lines.append(f"{self.namespace(node)} {self.link(node).line(self.dilation)}")
        # The end of its input ends it, even if this process is killed.
        self._router = subprocess.Popen(
            [str(ROUTER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        # It represents separate machines, so this machine's load must not delay packets.
        os.sched_setscheduler(self._router.pid, os.SCHED_RR, os.sched_param(1))
        self._ask("\n".join([*lines, "start"]), 1)
        for node in range(self.nodes):
            name = self.namespace(node)
            _run("ip", "-n", name, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
            _run(
                "ip",
                "-n",
                name,
                "link",
                "set",
                "eth0",
                "mtu",
                str(self.wan.mtu),
                "txqueuelen",
                "10000",
                "up",
            )
            _run("ip", "-n", name, "link", "set", "lo", "up")

    def _ask(self, text: str, lines: int) -> list[str]:
        """Send the router a command and return its answer."""
        router, answer = self._router, b""
        deadline = time.monotonic() + 20
        try:
            router.stdin.write(text.encode() + b"\n")
            while answer.count(b"\n") < lines:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([router.stdout], [], [], left)[0]:
                    raise NetworkError("the router of a wide-area network does not answer")
                if not (more := router.stdout.read(4096)):
                    raise NetworkError(f"the router ended with status {router.wait()}")
                answer += more
        except BrokenPipeError:
            raise NetworkError(f"the router ended with status {router.wait()}") from None
        return answer.decode().splitlines()


def linked(nodes: int, links: str, dilation: float = 1.0) -> ShapedNetwork:
    """Return the network of a benchmark. ``links`` is a rate, or describes a wide-area network."""
    if "=" in links:
        return WideAreaNetwork(nodes, links, dilation)
    return ShapedNetwork(nodes, links, verify=False, dilation=dilation)


def unavailable() -> str:
    """Return "" if such networks can be made here, otherwise a sentence with the reason."""
    return available() or ("" if ROUTER.exists() else f"there is no {ROUTER.name} in build")
