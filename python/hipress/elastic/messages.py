"""What members tell each other, and how that is written as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Callable, Union

from hipress.elastic.view import Member, Process, View

Ballot = tuple  # (number, id of the proposer)
NO_BALLOT: Ballot = (0, "")


@dataclass(frozen=True)
class Beat:
    """A sign of life. ``epoch``: of the newest view known; ``joining``: asks to become a member."""

    epoch: int
    joining: bool


@dataclass(frozen=True)
class Request:
    """Asks the coordinator for a view after this epoch's. No ``trouble``: for the joiners' sake."""

    epoch: int
    trouble: str
    joins: tuple[Member, ...]


@dataclass(frozen=True)
class Collect:
    """Phase 1: asks the members of ``base`` to promise. ``planned``: nothing has failed."""

    base: View
    ballot: Ballot
    planned: bool
    dead: tuple[str, ...]


@dataclass(frozen=True)
class Promise:
    """A member's answer to Collect, and what it knows. ``epoch`` is the base's, here and below;
    ``expelled``: why it leaves at once, if it was asked to; ``vacant``: slots for which there is
    evidence, as new as this answer, that they have no process."""

    epoch: int
    ballot: Ballot
    accepted_ballot: Ballot
    accepted_view: View | None
    step: int
    clean: bool
    entered: int
    trouble: str
    suspects: tuple[str, ...]
    dead: tuple[str, ...]
    joins: tuple[Member, ...]
    leaving: tuple[str, ...]
    expelled: str
    vacant: tuple[int, ...]


@dataclass(frozen=True)
class Witness:
    """The answer of a process that is no member of the base and knows no newer view. ``dead`` and
    ``vacant``: as in Promise."""

    epoch: int
    ballot: Ballot
    dead: tuple[str, ...] = ()
    vacant: tuple[int, ...] = ()


@dataclass(frozen=True)
class Refuse:
    """No: a higher ballot has been promised."""

    epoch: int
    ballot: Ballot
    promised: Ballot


@dataclass(frozen=True)
class Accept:
    """Phase 2: asks the members of ``base`` to accept the view."""

    base: View
    ballot: Ballot
    view: View
    dead: tuple[str, ...]


@dataclass(frozen=True)
class Accepted:
    epoch: int
    ballot: Ballot


@dataclass(frozen=True)
class Abandon:
    """The proposer gives its ballot up: there is nothing to change, or not yet."""

    epoch: int
    ballot: Ballot


@dataclass(frozen=True)
class Found:
    """Asks the processes that are at the slots now for consent to a view of just these."""

    ballot: Ballot
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Consent:
    """The answer of a process that knows no living member of a view. ``epoch``: the newest it has
    heard of."""

    epoch: int
    ballot: Ballot


@dataclass(frozen=True)
class Install:
    """A view that is decided."""

    view: View


@dataclass(frozen=True)
class Leaving:
    """The sender leaves: at once, or at a boundary. ``expelled``: why, if it was asked to."""

    at_boundary: bool
    expelled: str = ""


@dataclass(frozen=True)
class Expel:
    """Asks the receiver to leave this epoch at once: it lives, but keeps the sender waiting."""

    epoch: int
    why: str


Message = Union[
    Beat,
    Request,
    Collect,
    Promise,
    Witness,
    Refuse,
    Accept,
    Accepted,
    Abandon,
    Found,
    Consent,
    Install,
    Leaving,
    Expel,
]
_KINDS = {kind.__name__: kind for kind in Message.__args__}  # type: ignore[attr-defined]


class Malformed(ValueError):
    """Bytes that are no message."""


def _of(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise Malformed(f"{value!r:.40} where {kind.__name__} belongs")
        return value

    return read


_integer, _text, _truth, _list = _of(int), _of(str), _of(bool), _of(list)


def _ballot(value: Any) -> Ballot:
    number, proposer = _list(value)
    return (_integer(number), _text(proposer))


def _member(value: Any) -> Member:
    member_id, slot, host, port, incarnation, process = _list(value)
    boot, namespace, pid, start = _list(process)
    if not 0 <= _integer(pid) < 1 << 31:
        raise Malformed(f"{pid!r:.40} where a process id belongs")
    return Member(
        _text(member_id),
        _integer(slot),
        _text(host),
        _integer(port),
        _integer(incarnation),
        Process(_text(boot), _text(namespace), pid, _integer(start)),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _integers(value: Any) -> tuple[int, ...]:
    return tuple(map(_integer, _list(value)))


def _members(value: Any) -> tuple[Member, ...]:
    return tuple(map(_member, _list(value)))


def _view(value: Any) -> View:
    epoch, members, step, source, behind, boundary, departed, joined = _list(value)
    if boundary is not None:
        _integer(boundary)
    gone = tuple((_member(member), _text(why)) for member, why in _list(departed))
    view = View(
        _integer(epoch),
        _members(members),
        _integer(step),
        _text(source),
        _texts(behind),
        boundary,
        gone,
        _texts(joined),
    )
    if not view.members:
        raise Malformed("a view without members")
    return view


def _view_or_none(value: Any) -> View | None:
    return None if value is None else _view(value)


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("epoch", "step", "entered"), _integer),
    **dict.fromkeys(("joining", "planned", "clean", "at_boundary"), _truth),
    **dict.fromkeys(("ballot", "accepted_ballot", "promised"), _ballot),
    **dict.fromkeys(("dead", "suspects", "leaving"), _texts),
    "vacant": _integers,
    **dict.fromkeys(("base", "view"), _view),
    "accepted_view": _view_or_none,
    **dict.fromkeys(("joins", "members"), _members),
    **dict.fromkeys(("trouble", "expelled", "why"), _text),
}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def to_plain(message: Message) -> list[Any]:
    """A message as a list that JSON can hold: its kind, then its fields."""
    return [type(message).__name__, *_plain(message)]


def from_plain(value: Any) -> Message:
    """The message that ``to_plain`` wrote.

    :raises Malformed: it is none
    """
    try:
        name, *fields = _list(value)
        kind = _KINDS[_text(name)]
        names = [field.name for field in dataclasses.fields(kind)]
        if len(names) != len(fields):
            raise Malformed(f"{name} with {len(fields)} fields")
        return kind(*(_READ[name](field) for name, field in zip(names, fields)))
    except Malformed:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise Malformed(f"no message: {error}") from error


def slots_of(value: Any) -> set[int]:
    """Return the slots of all members in a message or in a part of one."""
    if isinstance(value, Member):
        return {value.slot}
    if dataclasses.is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in dataclasses.fields(value))
    return set().union(*map(slots_of, value)) if isinstance(value, tuple) else set()


def member_to_plain(member: Member) -> list[Any]:
    return _plain(member)


def member_from_plain(value: Any) -> Member:
    """:raises Malformed: it is no member"""
    try:
        return _member(value)
    except (ValueError, TypeError) as error:
        raise Malformed(f"no member: {error}") from error


def dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def loads(data: bytes) -> Any:
    """:raises Malformed: it is no JSON"""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed("no JSON") from error
