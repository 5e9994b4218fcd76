"""What members tell each other, and how that is written as JSON."""

from typing import Any, Optional, Union

import msgspec

from hipress.elastic.membership.view import ArrayStruct, Member, View

Ballot = tuple[int, str]  # number, id of the proposer
NO_BALLOT: Ballot = (0, "")


class Beat(ArrayStruct, frozen=True, tag=True):
    """A sign of life. ``epoch``: of the newest view known; ``joining``: asks to become a member."""

    epoch: int
    joining: bool


class Request(ArrayStruct, frozen=True, tag=True):
    """Asks the coordinator for a view after this epoch's. No ``trouble``: for the joiners' sake."""

    epoch: int
    trouble: str
    joins: tuple[Member, ...]


class Collect(ArrayStruct, frozen=True, tag=True):
    """Phase 1: asks the members of ``base`` to promise. ``planned``: nothing has failed."""

    base: View
    ballot: Ballot
    planned: bool
    dead: tuple[str, ...]


class Promise(ArrayStruct, frozen=True, tag=True):
    """A member's answer to Collect, and what it knows. ``epoch`` is the base's, here and below;
    ``expelled``: why it leaves at once, if it was asked to; ``vacant``: slots for which there is
    evidence, as new as this answer, that they have no process."""

    epoch: int
    ballot: Ballot
    accepted_ballot: Ballot
    accepted_view: Optional[View]
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


class Witness(ArrayStruct, frozen=True, tag=True):
    """The answer of a process that is no member of the base and knows no newer view. ``dead`` and
    ``vacant``: as in Promise."""

    epoch: int
    ballot: Ballot
    dead: tuple[str, ...] = ()
    vacant: tuple[int, ...] = ()


class Refuse(ArrayStruct, frozen=True, tag=True):
    """No: a higher ballot has been promised."""

    epoch: int
    ballot: Ballot
    promised: Ballot


class Accept(ArrayStruct, frozen=True, tag=True):
    """Phase 2: asks the members of ``base`` to accept the view."""

    base: View
    ballot: Ballot
    view: View
    dead: tuple[str, ...]


class Accepted(ArrayStruct, frozen=True, tag=True):
    epoch: int
    ballot: Ballot


class Abandon(ArrayStruct, frozen=True, tag=True):
    """The proposer gives its ballot up: there is nothing to change, or not yet."""

    epoch: int
    ballot: Ballot


class Found(ArrayStruct, frozen=True, tag=True):
    """Asks the processes that are at the slots now for consent to a view of just these."""

    ballot: Ballot
    members: tuple[Member, ...]


class Consent(ArrayStruct, frozen=True, tag=True):
    """The answer of a process that knows no living member of a view. ``epoch``: the newest it has
    heard of."""

    epoch: int
    ballot: Ballot


class Install(ArrayStruct, frozen=True, tag=True):
    """A view that is decided."""

    view: View


class Leaving(ArrayStruct, frozen=True, tag=True):
    """The sender leaves: at once, or at a boundary. ``expelled``: why, if it was asked to."""

    at_boundary: bool
    expelled: str = ""


class Expel(ArrayStruct, frozen=True, tag=True):
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


class Malformed(ValueError):
    """Bytes that are no message."""


def to_plain(message: Message) -> list[Any]:
    """A message as a list that JSON can hold: its kind, then its fields."""
    return msgspec.to_builtins(message)


def from_plain(value: Any) -> Message:
    """The message that ``to_plain`` wrote.

    :raises Malformed: it is none
    """
    return _convert(value, Message)


def _convert(value: Any, kind: Any) -> Any:
    try:
        found = msgspec.convert(value, kind)
        # Fields with defaults must not be missing: the sender has another version.
        is_whole = msgspec.json.encode(found) == msgspec.json.encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Malformed(f"no message: {error}") from error
    if not is_whole:
        raise Malformed("no message: a field is missing")
    return found


def slots_of(value: Any) -> set[int]:
    """Return the slots of all members in a message or in a part of one."""
    if isinstance(value, Member):
        return {value.slot}
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    return set().union(*map(slots_of, value)) if isinstance(value, tuple) else set()


def member_to_plain(member: Member) -> list[Any]:
    return msgspec.to_builtins(member)


def member_from_plain(value: Any) -> Member:
    """:raises Malformed: it is no member"""
    return _convert(value, Member)


def dumps(value: Any) -> bytes:
    return msgspec.json.encode(value)


def loads(data: bytes) -> Any:
    """:raises Malformed: it is no JSON"""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Malformed("no JSON") from error
