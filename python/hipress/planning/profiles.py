"""Profiles: what is known of a cluster, published or measured.

A measured profile is a JSON file that `hipress profile` writes::

    format      "hipress-profile", version 1
    name, created, machine, nodes       where and when it was measured
    shared_host  true if all nodes share one machine and so its processors
    threads     codec threads of a node; of the machine, if it is shared
    node_threads    of a shared machine's, those that one node takes, at most
    task        seconds from a task's end to the begin of the next one that depends on it
    network     send: curve, seconds of one message by bytes, one way, from task to task;
                message: seconds between small messages of one node that follow each other;
                handling: seconds of processor that one takes of both its nodes
                part: seconds of processor that one more small payload in a shared message takes of
                both its nodes, its small tasks' bookkeeping included; optional: without it, each
                payload is a separate message
    codecs      per type: params, bytes_per_element, fixed_bytes, and curves in seconds: encode,
                decode, add (payload and own gradient) by elements, merge by elements x payloads
    samples     what the curves were fitted to: [size, median seconds, times measured]; messages and
                parts: [gradients pushed at once, seconds of processor of all nodes, 1]
    check       per type, seconds of a large gradient, to compare with what the curves predict

A curve is {w, b, o, r2, spread}: max(o, w x + b) with the quality of its fit
(:mod:`hipress.planning.curve`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import msgspec

from hipress.base import files
from hipress.base.checked import DAMAGED
from hipress.planning import sosp21
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.planning.sosp21 import PublishedProfile

FORMAT, VERSION = "hipress-profile", 1
MAX_NODE_THREADS = 4
"""Default number of codec threads of a node, on a machine with as many cores."""
PUBLISHED = "sosp21"


class ProfileError(ValueError):
    """Profile that cannot be read, or lacks the requested data."""


@dataclass(frozen=True)
class MeasuredProfile:
    """Curves of a cluster, as `hipress profile` measured them, in seconds, bytes, elements."""

    name: str
    nodes: int
    threads: int
    """Codec threads of a node, or of the machine if nodes share it."""
    send: Curve
    message: float
    codecs: dict[str, Codec]
    task: float = 5e-6
    handling: float = 0.0
    part: Optional[float] = None  # noqa: UP045 (Python 3.9)
    shared_host: bool = False
    node_threads: int = MAX_NODE_THREADS
    """Largest number of a shared machine's threads that one node uses."""
    poor: list[str] = field(default_factory=list)
    """Names of curves that fit badly."""

    def costs(self, codec: str) -> Costs:
        """Return the costs of a job with this codec."""
        if codec not in self.codecs:
            known = ", ".join(sorted(self.codecs))
            raise ProfileError(f"profile {self.name} has no measurements of {codec!r}; has {known}")
        return Costs(self.codecs["none"], self.codecs[codec])

    def cluster(self) -> Cluster:
        """Return hosts and links like the measured ones."""
        bandwidth = 1 / max(self.send.w, 1e-13)
        return Cluster(
            bandwidth=bandwidth,
            latency=self.send.o,
            burst=max(0.0, -self.send.b) * bandwidth,
            message=min(self.message, self.send.o),
            threads=self.threads,
            task=self.task,
            handling=self.handling,
            part=self.part,
            shared_hosts=self.shared_host,
            node_threads=self.node_threads if self.shared_host else None,
        )

    def compressed_types(self) -> list[str]:
        """Return the measured codecs except "none"."""
        return [name for name in self.codecs if name != "none"]

    def type_named(self, codec: str | None) -> str:
        """Return the named codec or, without a name, the only one that compresses."""
        types = self.compressed_types()
        if not codec and len(types) != 1:
            raise ProfileError(
                f"profile {self.name} holds {', '.join(types) or 'no compression type'}; "
                "say which one with --type"
            )
        return codec or types[0]


def load(name: str | os.PathLike[str]) -> PublishedProfile | MeasuredProfile:
    """Return the profile of a name (``sosp21``) or in a file."""
    if str(name) == PUBLISHED:
        return sosp21.load()
    path = Path(name)
    if not path.exists():
        raise ProfileError(
            f"the profile must be {PUBLISHED!r} or a file that `hipress profile` wrote; "
            f"there is no file {path}"
        )
    try:
        values = files.read_json(path, "profile")
    except files.FileError as error:
        raise ProfileError(str(error)) from error
    try:
        if values["format"] == "hipress-published-profile":
            return PublishedProfile.from_json(values)
        if (values["format"], values["version"]) != (FORMAT, VERSION):
            raise ProfileError(f"{path} has format {values['format']} version {values['version']}")
        return _measured(values)
    except ProfileError:
        raise
    except (*DAMAGED, msgspec.ValidationError) as error:
        raise ProfileError(f"{path} lacks what a profile must hold: {error!r}") from error


def _measured(values: dict) -> MeasuredProfile:
    curves = {"send": values["network"]["send"]}
    for name, row in values["codecs"].items():
        curves |= {f"{op} of {name}": row[op] for op in ("encode", "decode", "merge", "add")}
    codecs = {name: {"name": name, **row} for name, row in values["codecs"].items()}
    poor = [name for name, curve in curves.items() if curve.get("poor")]
    given = {**values["network"], **values, "codecs": codecs, "poor": poor}
    return msgspec.convert(given, MeasuredProfile)
