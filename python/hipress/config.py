"""Description of a compression, which all front ends share."""

from __future__ import annotations

import difflib
import operator
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from hipress.compression.compressor import Compressor, codecs
from hipress.planning.plan import Decision, load
from hipress.topology import topologies

if TYPE_CHECKING:
    from typing_extensions import Self

AUTO = "auto"
"""Value of three settings: default topology, measured plan, or type that the ranks choose."""
LOW_RANK = "powersgd"
"""Compression type that is not a codec of CompLL."""
MAX_RANK = 32
"""Largest rank of a low-rank compression. With larger ones arithmetic dominates."""
_SETTINGS = ("warmup_steps", "encode_on", "shared_momentum", "timeout", "optimizer")
"""Settings that some front ends have."""
_SYNONYMS = {
    "algorithm": "type",
    "bitwidth": "bits",
    "codec": "type",
    "compression": "type",
    "compressor": "type",
    "density": "ratio",
    "num_bits": "bits",
    "sparsity": "ratio",
}
"""Names in other libraries of what has another name here."""
_EVERYWHERE = ("type", "topology", "min_size", "devices_per_host", "plan", "entropy")
"""Fields that most front ends have."""


@dataclass(frozen=True)
class CompressionConfig:
    """Compression, which is checked when it is made. The front end decides about values of None.

    >>> config = hipress.CompressionConfig("dgc", {"ratio": 0.001}, warmup_steps=500)
    >>> hipress.torch.compress(model, config)

    Args:
        type: A codec's name, see :func:`hipress.codecs`; in PyTorch also "powersgd"; or "auto",
            which chooses by measurements of the ranks. Parameters may follow the name, as in
            "maxmin:bits=8" or "dgc:ratio=0.01,momentum=0".
        params: Parameters of the codec, by name.
        topology: A name in :data:`hipress.topology.TOPOLOGIES`, or "auto".
        min_size: Elements below which gradients are not compressed.
        warmup_steps: PyTorch, elastic jobs: steps in which gradients are not compressed.
        devices_per_host: Workers on each host, for a topology that distinguishes hosts.
        plan: A file of ``hipress plan``, or its decisions by gradient, which override min_size; or
            "auto", which measures min_size.
        encode_on: PyTorch: "host" or "device", where gradients on a GPU are encoded.
        shared_momentum: PyTorch: factor of the last result that is added to every gradient before
            it is encoded, from 0 (none) to below 1.
        entropy: Whether an entropy coder makes the codec's payloads smaller, for slow links: the
            same values in fewer bytes, with more time to encode and decode. May also be in
            ``params``.
        pull: Key-value stores: "auto", "none" or "same", whether pulled values are compressed.

    Raises:
        ValueError: For an invalid name or value.
    """

    type: str = "none"
    params: Mapping[str, object] = field(default_factory=dict)
    topology: str | None = None
    min_size: int | None = None
    warmup_steps: int = 0
    devices_per_host: int | None = None
    plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None
    encode_on: str = "host"
    shared_momentum: float = 0.0
    pull: str = AUTO
    entropy: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.type, str):
            raise ValueError(f"a compression type is a name such as 'dgc', not {self.type!r}")
        name, colon, rest = self.type.partition(":")
        if colon:
            self._set(type=name, params={**_params_in(self.type, rest), **self.params})
        self._set(params=dict(self.params))
        if "entropy" in self.params:
            self._set(entropy=self.params.pop("entropy"))
        self._set(entropy=_truth("entropy", self.entropy))
        for name in ("min_size", "warmup_steps", "devices_per_host"):
            if getattr(self, name) is not None:
                self._set(**{name: _whole(name, getattr(self, name))})
        for name, allowed in (("encode_on", ("host", "device")), ("pull", (AUTO, "none", "same"))):
            if getattr(self, name) not in allowed:
                choices = topologies.either(map(repr, allowed))
                raise ValueError(f"{name} must be {choices}, not {getattr(self, name)!r}")
        shared = self.shared_momentum
        if isinstance(shared, bool) or not isinstance(shared, (int, float)) or not 0 <= shared < 1:
            raise ValueError(f"shared_momentum must be in [0, 1), not {shared!r}")
        if self.topology is not None:
            automatic = str(self.topology).lower() == AUTO
            self._set(topology=AUTO if automatic else topologies.named(str(self.topology)))
        self._check_type()
        plan = {} if not self.plan or self.plan == AUTO else self.plan
        self._set(decisions=plan if isinstance(plan, Mapping) else load(plan))

    def _set(self, **values: object) -> None:
        """Set attributes during construction."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_type(self) -> None:
        if self.type == AUTO:
            return self._check_auto()
        if self.type == LOW_RANK:
            return self._check_rank()
        known = codecs()
        if self.type not in known:
            allowed = ", ".join(sorted([*known, AUTO, f"{LOW_RANK} (PyTorch)"]))
            near = nearest(self.type, [*known, AUTO, LOW_RANK])
            raise ValueError(f'unknown compression type "{self.type}"; allowed: {allowed}{near}')
        unknown = sorted(set(self.params) - set(known[self.type].params), key=str)
        if unknown:
            own = ", ".join(
                p.name if p.default is None else f"{p.name} (default {p.default})"
                for p in known[self.type].typed_params()
            )
            if unknown[0] in {f.name for f in fields(CompressionConfig)}:
                raise ValueError(
                    f"{unknown[0]} is no parameter of a codec: it is a setting beside them, or for "
                    "other front ends"
                )
            which = f"compression type {self.type}"
            if self.type == "none":
                which += " (the one if none is named)"
            near = nearest(unknown[0], [*known[self.type].params, *_EVERYWHERE, *_SETTINGS])
            raise ValueError(
                f'{which} has no parameter "{unknown[0]}"; its parameters: {own or "none"}; '
                f"those of most compressions: {', '.join(_EVERYWHERE)}{near}"
            )
        if self.entropy and self.encode_on == "device":
            raise ValueError("entropy is for payloads in host memory: leave it out, or encode_on")
        Compressor(self.type, **self.codec_params)

    def _check_auto(self) -> None:
        names = {name for codec in codecs().values() for name in codec.params} | {"rank"}
        for name in self.params:
            if name not in names:
                near = nearest(name, [*names, *_EVERYWHERE, *_SETTINGS])
                raise ValueError(f"there is no setting {name!r}{near}")
        for name in ("params", "warmup_steps", "plan", "encode_on", "shared_momentum", "entropy"):
            if getattr(self, name) and getattr(self, name) != _default(name):
                what = ", ".join(map(str, self.params)) if name == "params" else name
                raise ValueError(
                    f"type 'auto' chooses among compressions that need no other setting: leave "
                    f"{what} out, or name the type that it is for"
                )

    def _check_rank(self) -> None:
        unknown = sorted(set(self.params) - {"rank"}, key=str)
        if unknown:
            raise ValueError(f"{LOW_RANK} has no parameter {unknown[0]!r}; it has rank")
        if self.entropy:
            raise ValueError(f"{LOW_RANK} has no entropy stage: its factors go as they are")
        rank = self.rank
        if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= MAX_RANK:
            raise ValueError(f"rank must be a whole number from 1 to {MAX_RANK}, not {rank!r}")

    @property
    def codec_params(self) -> dict[str, object]:
        """Arguments of :class:`hipress.Compressor` other than the type."""
        return {**self.params, "entropy": 1} if self.entropy else dict(self.params)

    @property
    def rank(self) -> int:
        """Rank of a low-rank compression, or 0 for a codec."""
        return self.params.get("rank", 1) if self.type == LOW_RANK else 0

    @classmethod
    def of(
        cls, compression: str | Mapping[str, object] | CompressionConfig, **settings: object
    ) -> Self:
        """Return the configuration that a user's argument describes.

        Args:
            compression: A type's name; a mapping with "type", the codec's parameters, and any other
                field of this class; or a configuration.
            settings: Further fields. One with its default value counts as not given.

        Raises:
            ValueError: For an invalid value, or one that is given twice.
        """
        own = {f.name: f.default for f in fields(cls)}
        given = {name: value for name, value in settings.items() if value != own[name]}
        if not given.get("params", True):
            del given["params"]
        if type(compression) is cls and not given:
            return compression
        if isinstance(compression, CompressionConfig):
            if given:
                raise ValueError(
                    f"a CompressionConfig says all of a compression: {', '.join(sorted(given))} "
                    "must be in it, not beside it"
                )
            return cls(**{name: getattr(compression, name) for name in own})
        if not isinstance(compression, Mapping):
            return cls(compression, **given)
        said = {name: compression[name] for name in own if name in compression}
        twice = sorted(said.keys() & given.keys())
        if twice:
            raise ValueError(f"{twice[0]} is given twice, in the mapping and beside it")
        params = {name: value for name, value in compression.items() if name not in own}
        return cls(**{"params": params, **said, **given})

    def warm_up(self) -> tuple[dict[str, object], int]:
        """Return the codec's own parameters, and the number of steps without compression.

        A codec with its own warm-up (dgc) makes these steps itself, unless its parameters set its
        warm-up.
        """
        params, steps = dict(self.params), self.warmup_steps
        if steps and "warmup" in codecs()[self.type].params and "warmup" not in params:
            params, steps = {**params, "warmup": steps}, 0
        return params, steps

    def refuse_auto(self) -> None:
        """Raise a ValueError if the type is "auto", which not every front end supports."""
        if self.type == AUTO:
            raise ValueError(
                "type 'auto' is not for what this is: it is for DDP models, FSDP2, "
                "DistributedOptimizer, PyTorch's DiLoCo, elastic jobs, Keras and key-value stores; "
                "name a type, which `hipress codecs` lists"
            )

    def refuse_low_rank(self, where: str) -> None:
        """Raise a ValueError for a low-rank compression, which ``where`` does not support."""
        if self.rank:
            raise ValueError(
                f"{self.type} needs whole gradients by name and shape, which {where} does not "
                "have: it is for hipress.torch.compress() and DistributedOptimizer"
            )

    def store_params(self) -> dict[str, object]:
        """Return the parameters of a key-value store's native part, before a choice of "auto"."""
        for name in ("warmup_steps", "encode_on", "shared_momentum"):
            if getattr(self, name) != _default(name):
                raise ValueError(f"{name} is for PyTorch: a key-value store does not have it")
        self.refuse_low_rank("a key-value store")
        type = "none" if self.type == AUTO else self.type
        params = {"type": type, **self.codec_params, "pull": self.pull}
        for name in ("min_size", "topology", "devices_per_host"):
            if getattr(self, name) is not None:
                params[name] = getattr(self, name)
        return params

    def check_sums(self, names: Collection[str]) -> None:
        """Raise a ValueError if workers without servers cannot sum gradients of these names."""
        replace(self, warmup_steps=0).store_params()  # supported here, but not by stores
        if self.pull == "none":
            raise ValueError("pull is for kvstores: workers exchange sums compressed, too")
        if self.plan == AUTO:
            raise ValueError("plan='auto' measures for seconds, while workers come and go")
        unknown = sorted(set(self.decisions) - set(names))
        if unknown:
            raise ValueError(
                f"the plan has {unknown[0]!r}, which is no trained parameter; there are "
                + ", ".join(list(names)[:5])
            )

    def __str__(self) -> str:
        said = {"type": self.type, **self.params}
        for f in fields(self):
            if f.name != "params" and getattr(self, f.name) != f.default:
                said[f.name] = getattr(self, f.name)
        return ", ".join(f"{name}={value}" for name, value in said.items())


def _default(name: str) -> object:
    """Return the default of a setting except params, whose default is made."""
    return CompressionConfig.__dataclass_fields__[name].default


def nearest(name: object, names: Collection[str]) -> str:
    """Return a question that names the most similar of these names, or an empty string."""
    found = [_SYNONYMS[name]] if _SYNONYMS.get(name) in names else []
    found = found or difflib.get_close_matches(str(name), list(names), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _params_in(text: str, rest: str) -> dict[str, object]:
    """Return the parameters that follow a type's name, such as "bits=8"."""
    params: dict[str, object] = {}
    for pair in rest.split(","):
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ValueError(f"{pair!r} in {text!r} is not name=value, as in 'maxmin:bits=8'")
        params[name.strip()] = _number(value.strip())
    return params


def _number(text: str) -> object:
    """Return the number that a text is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _truth(name: str, value: object) -> bool:
    """Return a truth value, which may be given as text in compression parameters."""
    for truth, words in ((True, ("1", "true")), (False, ("0", "false"))):
        if str(value).lower() in words:
            return truth
    raise ValueError(f"{name} must be True or False, not {value!r}")


def _whole(name: str, value: object) -> int:
    """Return a whole number of 0 or more, which may be given as text in compression parameters."""
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not value.isdecimal()):
            raise TypeError
        number = int(value) if isinstance(value, str) else operator.index(value)
        if number >= 0:
            return number
    except TypeError:
        pass
    raise ValueError(f"{name} must be a whole number of 0 or more, not {value!r}")


def difference(left: str, right: str | None) -> str:
    """Return two texts, if long from where they begin to differ."""
    right, most = str(right), 160
    unlike = (i for i, (a, b) in enumerate(zip(left, right)) if a != b)
    at = next(unlike, min(len(left), len(right)))  # one may be a prefix of the other
    at = max(0, at - 40) if max(len(left), len(right)) > most else 0
    return " and ".join(repr(text[at : at + most]) for text in (left, right))
