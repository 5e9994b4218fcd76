"""A process group's compression settings, compared between all ranks before the first step."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

from hipress.compression.compressor import Compressor, codecs
from hipress.config import AUTO, CompressionConfig, difference
from hipress.planning import plan as plans
from hipress.topology import topologies
from hipress.topology.graph import Graph
from hipress.torch import exchange, low_rank
from hipress.torch.dtypes import DEVICE_TYPES, FLAGS, of_gradient

MIN_SIZE = 16 * 1024
"""Minimum elements of a compressed gradient by default: 64 KiB of float32.

Smaller gradients of a bucket travel together.
"""


@dataclass(frozen=True)
class Settings(CompressionConfig):
    """Settings of a process group's compression, with the front end's own values filled in.

    With topology "auto", and with type "auto" and no topology, the ranks may choose one
    (``chooses_topology``).

    Raises:
        ValueError: for a name or value that is not allowed
    """

    min_size: int = MIN_SIZE
    devices_per_host: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        free = self.topology in (None, AUTO)
        for field in ("min_size", "devices_per_host"):
            if getattr(self, field) is None:
                self._set(**{field: getattr(Settings, field)})
        self._set(
            topology=topologies.among_workers("ps" if free else self.topology),
            chooses_topology=free and AUTO in (self.topology, self.type),
        )
        if self.pull != AUTO:
            raise ValueError("pull is for key-value stores: a process group does not have it")
        if self.type == AUTO:
            config, momentum = f"type={AUTO}", 0.0
        elif self.rank:
            self._check_low_rank()
            config, momentum = f"type={self.type},rank={self.rank}", 0.0
        else:
            config, momentum = self._codec()
        self._set(config=config, momentum=momentum)
        if self.shared_momentum and momentum:
            raise ValueError(
                f"shared_momentum is {self.shared_momentum} and {self.type} has momentum "
                f"{momentum} of its own: give {self.type} momentum=0"
            )

    def _codec(self) -> tuple[str, float]:
        """Return the codec's configuration as text, and its own momentum or 0."""
        params, warmup_steps = self.warm_up()
        self._set(params=params, warmup_steps=warmup_steps)
        default = {p.name: p.default for p in codecs()[self.type].typed_params()}
        momentum = self.params.get("momentum", default.get("momentum", 0.0))
        return Compressor(self.type, **self.codec_params).config, float(momentum)

    def _check_low_rank(self) -> None:
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

    @property
    def codec(self) -> tuple[str, dict[str, object]]:
        """Codec of messages, with its parameters. Low-rank factors are sent without a codec."""
        return ("none", {}) if self.rank else (self.type, self.codec_params)

    @property
    def params_after_warm_up(self) -> dict[str, object]:
        """Codec's own parameters after the first steps."""
        own = {"warmup": 0} if "warmup" in self.params else {}
        return {**self.params, **own}

    def refuse_auto_topology(self) -> None:
        """Refuse topology "auto" with a named type, which not all front ends support."""
        if self.chooses_topology and self.type != AUTO:
            raise ValueError(
                "topology 'auto' is for compress() and DistributedOptimizer: name another one"
            )

    def with_fixed_topology(self) -> Settings:
        """Return the same settings without a choice of topology."""
        return replace(self, topology=self.topology)

    @property
    def any_momentum(self) -> float:
        """Momentum with which compressed gradients arrive: shared, or the codec's own."""
        return self.shared_momentum or self.momentum

    @property
    def encodes_each(self) -> bool:
        """Whether every rank's own gradient is encoded alone, so that it gets the codec's momentum.

        What is encoded in a sum gets none.
        """
        return topologies.TOPOLOGIES[self.topology].encodes_each_of(self.devices_per_host)

    def check_momentum(self) -> None:
        """Check that every rank's gradient gets the codec's momentum, if there is one."""
        if self.momentum and not self.encodes_each:
            raise ValueError(
                f"{self.type}'s momentum of {self.momentum} needs a topology in which every rank's "
                f"gradient is encoded by itself ({topologies.that_encode_each()}), and "
                f"{self.topology} encodes sums: give {self.type} momentum=0"
            )

    def compresses(self, name: str, count: int, shape: Sequence[int] = ()) -> bool:
        """Return whether to compress a gradient of so many elements and, with low rank, shape."""
        if not count or (self.rank and not low_rank.pays(shape, self.rank)):
            return False
        decision = self.decisions.get(name)
        return count >= self.min_size if decision is None else decision.compress

    def graph(
        self,
        count: int,
        world_size: int,
        home: int,
        name: str = "",
        partitions: int | None = None,
        topology: str | None = None,
    ) -> Graph:
        """Return the graph of ``count`` elements, in the planned partitions, or so many."""
        decision = self.decisions.get(name)
        return topologies.build(
            topology or self.topology,
            count,
            world_size,
            home=home,
            devices_per_host=self.devices_per_host,
            partitions=decision.partitions if decision else partitions,
        )

    def describe(self) -> dict[str, str]:
        """Return texts that must be the same on all ranks, by name."""
        return {
            "compression": self.config,
            "topology": AUTO if self.chooses_topology else self.topology,
            "min_size": str(self.min_size),
            "warmup_steps": str(self.warmup_steps),
            "devices_per_host": str(self.devices_per_host),
            "encode_on": self.encode_on,
            "shared_momentum": str(float(self.shared_momentum)),
            "plan": "; ".join(f"{n} {d}" for n, d in self.decisions.items())
            or (AUTO if self.plan == AUTO else ""),
        }


def digest(text: str) -> int:
    """Return 62 bits of a text's hash, the same in every process."""
    data = text.encode()
    return zlib.crc32(data) << 30 | zlib.crc32(data[::-1]) >> 2


def agree(group: dist.ProcessGroup, mine: Mapping[str, str], problem: str) -> None:
    """Compare settings between ranks, so that all of them continue or all of them stop.

    ``mine`` are texts by name, which must be the same on all ranks. ``problem`` is an error of this
    rank, or "". Every rank raises a ValueError that names the first rank with a problem or a
    difference.
    """
    texts = {name: str(value) for name, value in mine.items()}
    found = exchange.gather(group, [problem, texts], "settings", tuple[str, dict[str, str]])
    for rank, (text, _) in enumerate(found):
        if text:
            who = "" if rank == dist.get_rank(group) else f"rank {rank}: "
            raise ValueError(who + text)
    for rank, (_, other) in enumerate(found):
        for name, value in found[0][1].items():
            if other.get(name) != value:
                raise ValueError(
                    f"ranks 0 and {rank} differ in {name}: {difference(value, other.get(name))}; "
                    "it must be the same on all ranks"
                )


def check_parameters(
    parameters: Sequence[tuple[str, torch.nn.Parameter]], settings: Settings
) -> None:
    """Refuse parameters that no codec supports, and a plan for another model."""
    for name, parameter in parameters:
        large = settings.compresses(name, parameter.numel(), parameter.shape)
        dtype = of_gradient(parameter)
        if large and dtype not in FLAGS:
            kind = str(dtype).removeprefix("torch.")
            raise ValueError(
                f"parameter {name!r} is {kind}; gradients that can be compressed are float32, "
                f"float16 and bfloat16 (or of fewer than min_size = {settings.min_size} elements)"
            )
        device = parameter.device
        if device.type not in DEVICE_TYPES:
            raise ValueError(
                f"parameter {name!r} is on {device}; gradients can be on "
                + " or ".join(DEVICE_TYPES)
            )
        if device != parameters[0][1].device:
            raise ValueError(
                f"parameter {name!r} is on {device} and {parameters[0][0]!r} on "
                f"{parameters[0][1].device}; all must be on one device: start a process for each"
            )
    sizes = {name: parameter.numel() for name, parameter in parameters}
    plans.check(settings.decisions, sizes, "parameter")
