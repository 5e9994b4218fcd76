"""Network of a small cluster on one machine: namespaces, veth pairs, a bridge, shaped links.

Every node is a network namespace with one interface, ``eth0``. All of them are connected to a
bridge in a separate namespace, so the machine's own network is unchanged, and deleting the
namespaces deletes everything. Both ends of each link are shaped, so a node sends and receives at
the given rate, as through a switch. Needs root and iproute2.

All nodes share this machine's processors. *Time dilation* gives each node as much as a separate
machine has: links are D times slower, and every measured time is divided by D, so that a node seems
to compute D times as fast (Gupta et al., "To Infinity and Beyond: Time-Warped Network Emulation",
NSDI 2006). With D nodes and dilation D, each has all of this machine's processors, and memory, to
itself. The latency of the links, some 50 us, and TCP's timers are also divided.

>>> with ShapedNetwork(4, rate="1gbit") as network:
...     network.popen(0, ["python", "server.py"])
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness import SCRIPTS

PREFIX = "hipress-bench"
_NAME = re.compile(rf"^{PREFIX}-(\d+)-\d+-\w+$")
_COMMAND_TIMEOUT = 20  # seconds; `ip` and `tc` answer in milliseconds
_numbers = itertools.count(1)  # of networks, which several threads may make

_RECEIVER = SCRIPTS / "receiver.py"
_SENDER = SCRIPTS / "sender.py"


class NetworkError(RuntimeError):
    """Namespace, link or shaper that could not be made, or does not work as requested."""


def available() -> str:
    """Return "" if namespaces can be made here, otherwise a sentence with the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            return f"network namespaces need the program {tool!r} (Debian: iproute2)"
    return ""


def require() -> None:
    """End the program with a message if namespaces cannot be made here."""
    reason = available()
    if reason:
        sys.exit(f"a shaped network is needed, but {reason}")


def _run(*command: str, check: bool = True) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NetworkError(f"{' '.join(command)}: no end after {_COMMAND_TIMEOUT} s") from error
    if check and done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if line.strip()]


def _delete(name: str) -> None:
    """End all processes in a namespace, then remove it with its links."""
    for pid in _run("ip", "netns", "pids", name, check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    _run("ip", "netns", "delete", name, check=False)


def remove_stale() -> list[str]:
    """Remove namespaces whose maker has died without doing so, and return their names."""
    removed = []
    for name in _namespaces():
        match = _NAME.match(name)
        if match and not os.path.exists(f"/proc/{match.group(1)}"):
            _delete(name)
            removed.append(name)
    return removed


class ShapedNetwork:
    """Context manager with `nodes` namespaces on one bridge, each link shaped to `rate`.

    Args:
        nodes: Number of namespaces, 1 to 250.
        rate: Rate of each link, in tc's syntax, for example ``"1gbit"``; None: unshaped links.
        dilation: Time dilation, at least 1. Arguments and results of this class are in dilated
            time.
        ipv6: Whether the nodes have IPv6 addresses only.
        burst: Burst of the token bucket filter, in tc's syntax.
        latency: Seconds that a packet may wait in that filter.
        verify: Whether to measure one link on entry, and raise NetworkError if it is off by more
            than 15%.

    Attributes:
        measured_bits_per_second: Result of `verify`, or None.
    """

    def __init__(
        self,
        nodes: int,
        rate: str | None = "1gbit",
        burst: str = "512kb",
        latency: float = 0.1,
        verify: bool = True,
        dilation: float = 1.0,
        ipv6: bool = False,
    ) -> None:
        if not 1 <= nodes <= 250:
            raise ValueError(f"nodes is {nodes}; allowed are 1 to 250")
        if not 1 <= dilation < float("inf"):
            raise ValueError(f"dilation is {dilation}; allowed are 1 and more")
        self.nodes, self.rate, self.burst, self.latency = nodes, rate, burst, latency
        self.verify, self.dilation, self.ipv6 = verify, dilation, ipv6
        self.measured_bits_per_second: float | None = None
        self._id = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        self._switch = f"{self._id}-sw"

    @property
    def switch(self) -> str:
        """Name of the bridge's namespace, through which all traffic between nodes passes."""
        return self._switch

    def namespace(self, node: int) -> str:
        """Return the name of a node's namespace."""
        return f"{self._id}-n{node}"

    def address(self, node: int) -> str:
        """Return the node's only address, on its ``eth0``."""
        return f"fd77::{node + 1:x}" if self.ipv6 else f"10.77.0.{node + 1}"

    def command(self, node: int, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` on a node."""
        return ["ip", "netns", "exec", self.namespace(node), *command]

    def popen(
        self,
        node: int,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        **keywords: Any,
    ) -> subprocess.Popen:
        """Start a process on a node. `keywords` are those of subprocess.Popen."""
        return subprocess.Popen(self.command(node, command), env=env, **keywords)

    def cut(self, node: int) -> None:
        """Disconnect a node at the switch. No packet passes, and neither end is notified."""
        _run("ip", "-n", self._switch, "link", "set", f"port{node}", "down")

    def mend(self, node: int) -> None:
        """Connect a node again."""
        _run("ip", "-n", self._switch, "link", "set", f"port{node}", "up")

    def seconds(self, measured: float) -> float:
        """Return seconds of this machine's clock in dilated time."""
        return measured / self.dilation

    def __enter__(self) -> ShapedNetwork:
        reason = available()
        if reason:
            raise NetworkError(reason)
        remove_stale()
        try:
            self._build()
            if self.verify and self.rate and self.nodes > 1:
                self._verify()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes in the namespaces and remove these. Idempotent."""
        mine = f"{self._id}-"
        for name in _namespaces():
            if name.startswith(mine):
                _delete(name)

    def _build(self) -> None:
        switch = self._switch
        _run("ip", "netns", "add", switch)
        _run("ip", "-n", switch, "link", "add", "bridge0", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "bridge0", "up")
        for node in range(self.nodes):
            name, port = self.namespace(node), f"port{node}"
            _run("ip", "netns", "add", name)
            _run(
                "ip",
                "-n",
                switch,
                "link",
                "add",
                port,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                name,
            )
            _run("ip", "-n", switch, "link", "set", port, "master", "bridge0", "up")
            # Without nodad an IPv6 address cannot be used for a second.
            address = f"{self.address(node)}/{64 if self.ipv6 else 24}"
            nodad = ["nodad"] if self.ipv6 else []
            _run("ip", "-n", name, "address", "add", address, "dev", "eth0", *nodad)
            _run("ip", "-n", name, "link", "set", "eth0", "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            if self.rate:
                self._shape(node, self.rate)

    def _shape(self, node: int, rate: str) -> None:
        """Shape both ends of a node's link, also repeatedly."""
        rate = f"{bits_per_second(rate) / self.dilation:.0f}bit"
        latency = f"{self.latency * self.dilation:g}s"
        for where, device in ((self._switch, f"port{node}"), (self.namespace(node), "eth0")):
            _run(
                "tc",
                "-n",
                where,
                "qdisc",
                "replace",
                "dev",
                device,
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                self.burst,
                "latency",
                latency,
            )

    def reshape(self, rate: str) -> None:
        """Give all links another rate, while processes use them."""
        self.rate = rate
        for node in range(self.nodes):
            self._shape(node, rate)

    def _verify(self) -> None:
        wanted = bits_per_second(self.rate)
        size = max(1 << 20, int(wanted / self.dilation / 8 * 0.5))
        # Other load in that half second sometimes disturbs the measurement. A link with a wrong
        # rate fails every time.
        for _ in range(4):
            measured = self.measured_bits_per_second = self.measure(0, 1, size) * self.dilation
            if 0.8 * wanted < measured < 1.15 * wanted:
                return
        raise NetworkError(
            f"the link between two nodes was shaped to {self.rate} but carries "
            f"{measured / 1e6:.0f} Mbit/s; is the machine busy?"
        )

    def measure(self, source: int, target: int, size: int) -> float:
        """Return the bits per second of one TCP stream of `size` bytes between two nodes.

        The result is not dilated.
        """
        quiet = {"stdout": subprocess.PIPE, "text": True}
        receiver = self.popen(
            target, [sys.executable, str(_RECEIVER), self.address(target)], **quiet
        )
        sender = None
        try:
            port = receiver.stdout.readline().strip()
            if not port:
                raise NetworkError("the receiver of the bandwidth check did not start")
            sender = self.popen(
                source, [sys.executable, str(_SENDER), self.address(target), port, str(size)]
            )
            deadline = time.monotonic() + 60
            sender.wait(timeout=max(1, deadline - time.monotonic()))
            out, _ = receiver.communicate(timeout=max(1, deadline - time.monotonic()))
            return float(out)
        except (subprocess.TimeoutExpired, ValueError) as error:
            raise NetworkError(f"the bandwidth check failed: {error}") from error
        finally:
            for process in (receiver, sender):
                if process and process.poll() is None:
                    process.kill()
                    process.wait()
            receiver.stdout.close()


def bits_per_second(rate: str) -> float:
    """Convert a rate to bits per second: ``"1gbit"`` -> 1e9.

    Raises:
        ValueError: For anything but a number and bit, kbit, mbit, gbit.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bit", rate.lower())
    if not match:
        raise ValueError(f"rate is {rate!r}; allowed are a number and bit, kbit, mbit or gbit")
    return float(match.group(1)) * {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}[match.group(2)]
