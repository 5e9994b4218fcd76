"""What compression is asked for, checked on all ranks before the first step."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from hipress.casync import topologies
from hipress.casync.graph import Graph
from hipress.compression import Compressor, codecs
from hipress.secopa.plan import Decision, load
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.staging import KINDS
from hipress.torch.state import low_rank

MIN_SIZE = 16 * 1024
"""Gradients of fewer elements go uncompressed, a bucket's together: 64 KiB of float32."""

AUTO = "auto"
"""The plan that is measured before the first step."""


@dataclass
class Settings:
    """A compression setting.

    :param type: a codec's name, see :func:`hipress.codecs`, or :data:`low_rank.TYPE`
    :param params: its parameters
    :param warmup_steps: steps in which gradients go uncompressed; a codec with a warm-up of its own
        (dgc) compresses in them too, less at first, unless params say how long its "warmup" is
    :param plan: decisions by gradient, or a file of them; for those gradients instead of min_size;
        or "auto": min_size is to be measured, see :mod:`hipress.torch.tuning.auto`
    :param shared_momentum: factor of the result before, which is added to every gradient before it
        is encoded, see :class:`hipress.torch.state.momentum.SharedMomentum`; 0: none
    :param encode_on: "host" or "device": where gradients on a GPU are encoded
    :raises ValueError: for a name or value that is not allowed
    """

    type: str
    params: Mapping[str, object] = field(default_factory=dict)
    topology: str = "ps"
    min_size: int = MIN_SIZE
    warmup_steps: int = 0
    devices_per_host: int = 1
    plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None
    encode_on: str = "host"
    shared_momentum: float = 0.0

    def __post_init__(self) -> None:
        self.params = dict(self.params)
        if not isinstance(self.type, str):
            raise ValueError(f"a compression type is a name such as 'dgc', not {self.type!r}")
        for name in ("min_size", "warmup_steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a whole number of 0 or more, not {value!r}")
        if self.encode_on not in ("host", "device"):
            raise ValueError(f"encode_on must be 'host' or 'device', not {self.encode_on!r}")
        self.topology = topologies.among_workers(self.topology)
        self.rank, self.momentum = 0, 0.0
        """Of a low-rank compression, else 0; and the codec's own momentum, 0 if it has none."""

        if self.type == low_rank.TYPE:
            self._check_low_rank()
        else:
            self._check_codec()
        shared = self.shared_momentum
        if isinstance(shared, bool) or not isinstance(shared, (int, float)) or not 0 <= shared < 1:
            raise ValueError(f"shared_momentum must be in [0, 1), not {shared!r}")
        if shared and self.momentum:
            raise ValueError(
                f"shared_momentum is {shared} and {self.type} has momentum {self.momentum} of its "
                f"own: give {self.type} momentum=0"
            )
        if self.plan is None or self.plan == AUTO:
            self.decisions: Mapping[str, Decision] = {}
        else:
            self.decisions = self.plan if isinstance(self.plan, Mapping) else load(self.plan)

    def _check_codec(self) -> None:
        known = codecs()
        if self.type not in known:
            allowed = ", ".join(sorted([*known, low_rank.TYPE]))
            raise ValueError(f'unknown compression type "{self.type}"; allowed: {allowed}')
        own = "warmup" in known[self.type].params
        if own and self.warmup_steps and "warmup" not in self.params:
            self.params["warmup"], self.warmup_steps = self.warmup_steps, 0
        self.config = Compressor(self.type, **self.params).config
        default = {p.name: p.default for p in known[self.type].typed_params()}
        self.momentum = float(self.params.get("momentum", default.get("momentum", 0.0)))

    def _check_low_rank(self) -> None:
        self.rank = low_rank.check(self.params)
        self.config = f"type={self.type},rank={self.rank}"
        for name, allowed in (("encode_on", "host"), ("shared_momentum", 0)):
            if getattr(self, name) != allowed:
                raise ValueError(
                    f"{self.type} has no {name}={getattr(self, name)!r}, only {allowed!r}"
                )
        if self.plan == AUTO:
            raise ValueError(
                f"plan='auto' measures codecs; {self.type} compresses what has min_size elements "
                "or more and a shape that it makes smaller"
            )

    def refuse_low_rank(self, where: str) -> None:
        """:raises ValueError: for a low-rank compression, which ``where`` cannot take"""
        if self.rank:
            raise ValueError(
                f"{self.type} needs whole gradients by name and shape, which {where} does not "
                "have: it is for hipress.torch.compress() and DistributedOptimizer"
            )

    @property
    def codec(self) -> tuple[str, dict[str, object]]:
        """The codec by which messages go, and its parameters: factors go as they are."""
        return ("none", {}) if self.rank else (self.type, dict(self.params))

    @property
    def any_momentum(self) -> float:
        """What gradients that are compressed arrive with: shared, or the codec's own."""
        return self.shared_momentum or self.momentum

    @property
    def encodes_each(self) -> bool:
        """Whether every rank's own gradient is encoded by itself, so that all of it gets the
        codec's momentum: what is encoded in a sum gets none."""
        return topologies.TOPOLOGIES[self.topology].encodes_each_of(self.devices_per_host)

    def check_momentum(self) -> None:
        """:raises ValueError: if the codec has a momentum that not every rank's gradient gets"""
        if self.momentum and not self.encodes_each:
            raise ValueError(
                f"{self.type}'s momentum of {self.momentum} needs a topology in which every rank's "
                f"gradient is encoded by itself ({topologies.that_encode_each()}), and "
                f"{self.topology} encodes sums: give {self.type} momentum=0"
            )

    def compresses(self, name: str, count: int, shape: Sequence[int] = ()) -> bool:
        """Whether a gradient of ``count`` elements is to be compressed.

        :param shape: of the gradient, on which it depends with a low rank
        """
        if not count or (self.rank and not low_rank.pays(shape, self.rank)):
            return False
        decision = self.decisions.get(name)
        return count >= self.min_size if decision is None else decision.compress

    def graph(
        self, count: int, world_size: int, home: int, name: str = "",
        partitions: int | None = None, topology: str | None = None,
    ) -> Graph:  # fmt: skip
        """The graph of a gradient of ``count`` elements.

        :param partitions: into how many to cut it, if no plan says so
        :param topology: default: the one that was asked for
        """
        decision = self.decisions.get(name)
        return topologies.build(
            topology or self.topology, count, world_size, home=home,
            devices_per_host=self.devices_per_host,
            partitions=decision.partitions if decision else partitions,
        )  # fmt: skip

    def describe(self) -> dict[str, str]:
        """What must be the same on all ranks, by name."""
        return {
            "compression": self.config,
            "topology": self.topology,
            "min_size": str(self.min_size),
            "warmup_steps": str(self.warmup_steps),
            "devices_per_host": str(self.devices_per_host),
            "encode_on": self.encode_on,
            "shared_momentum": str(float(self.shared_momentum)),
            "plan": "; ".join(f"{n} {d}" for n, d in self.decisions.items())
            or (AUTO if self.plan == AUTO else ""),
        }


def digest(text: str) -> int:
    """62 bits of a text, the same in every process."""
    data = text.encode()
    return zlib.crc32(data) << 30 | zlib.crc32(data[::-1]) >> 2


def agree(group: dist.ProcessGroup, mine: Mapping[str, str], problem: str = "") -> None:
    """Compares settings between ranks, so that all of them go on or all of them stop.

    :param mine: texts by name, which must be the same on all ranks
    :param problem: what is wrong on this rank already; then every rank raises it
    :raises ValueError: on every rank, saying which rank differs in what
    """
    world_size = dist.get_world_size(group)
    found: list = [None] * world_size
    dist.all_gather_object(found, (problem, dict(mine)), group=group)
    for rank, (text, _) in enumerate(found):
        if text:
            who = "" if rank == dist.get_rank(group) else f"rank {rank}: "
            raise ValueError(who + text)
    for rank, (_, other) in enumerate(found):
        for name, value in found[0][1].items():
            if other.get(name) != value:
                raise ValueError(
                    f"ranks 0 and {rank} differ in {name}: {_difference(value, other.get(name))}; "
                    "it must be the same on all ranks"
                )


def _difference(left: str, right: str | None, most: int = 160) -> str:
    """The two texts, from where they begin to differ if they are long."""
    right = str(right)
    at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), 0)
    at = max(0, at - 40) if max(len(left), len(right)) > most else 0
    return " and ".join(repr(text[at : at + most]) for text in (left, right))


def check_parameters(
    parameters: Sequence[tuple[str, torch.nn.Parameter]], settings: Settings
) -> None:
    """Refuses what no codec can take, and a plan for another model.

    :raises ValueError: naming the first such parameter
    """
    for name, parameter in parameters:
        large = settings.compresses(name, parameter.numel(), parameter.shape)
        if large and parameter.dtype not in FLAGS:
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ValueError(
                f"parameter {name!r} is {kind}; gradients that can be compressed are float32, "
                f"float16 and bfloat16 (or of fewer than min_size = {settings.min_size} elements)"
            )
        device = parameter.device
        if device.type not in KINDS:
            raise ValueError(
                f"parameter {name!r} is on {device}; gradients can be on " + " or ".join(KINDS)
            )
        if device != parameters[0][1].device:
            raise ValueError(
                f"parameter {name!r} is on {device} and {parameters[0][0]!r} on "
                f"{parameters[0][1].device}; all must be on one device: start a process for each"
            )
    unknown = sorted(set(settings.decisions) - {name for name, _ in parameters})
    if unknown:
        raise ValueError(
            f"the plan has {unknown[0]!r}, which is no parameter of this model; there are "
            + ", ".join(name for name, _ in parameters[:5])
            + (", ..." if len(parameters) > 5 else "")
        )
