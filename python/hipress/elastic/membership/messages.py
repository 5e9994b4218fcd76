"""Messages between members, their representation in JSON, and actions that the protocol requests.

``Output`` is what the protocol's state machine requests from its caller.
"""

from typing import Any, NamedTuple, Optional, Union

import msgspec

from hipress.elastic.membership.view import ArrayStruct, Member, View

Ballot = tuple[int, str]  # number, id of the proposer
NO_BALLOT: Ballot = (0, "")


class Beat(ArrayStruct, frozen=True, tag=True):
    """Sign of life.

    Args:
        epoch: epoch of the newest view that the sender knows
        joining: whether the sender asks to become a member
    """

    epoch: int
    joining: bool


class Request(ArrayStruct, frozen=True, tag=True):
    """Request to the proposer for a view after this epoch's.

    Args:
        trouble: reason why the epoch has to end, or empty if only joiners need a view
    """

    epoch: int
    trouble: str
    joins: tuple[Member, ...]


class Collect(ArrayStruct, frozen=True, tag=True):
    """Phase 1: request to the members of ``base`` for a promise.

    Args:
        planned: whether nothing has failed
    """

    base: View
    ballot: Ballot
    planned: bool
    dead: tuple[str, ...]


class Promise(ArrayStruct, frozen=True, tag=True):
    """Answer of a member to Collect, with what it knows.

    Args:
        epoch: epoch of the base, also in the messages below
        expelled: reason why the member leaves at once, if it was asked to leave
        vacant: slots for which there is evidence, as new as this answer, that they have no process
    """

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
    """Answer of a process that is no member of the base and knows no newer view.

    Args:
        dead: as in Promise
        vacant: as in Promise
    """

    epoch: int
    ballot: Ballot
    dead: tuple[str, ...] = ()
    vacant: tuple[int, ...] = ()


class Refuse(ArrayStruct, frozen=True, tag=True):
    """Refusal, because a higher ballot has been promised."""

    epoch: int
    ballot: Ballot
    promised: Ballot


class Accept(ArrayStruct, frozen=True, tag=True):
    """Phase 2: request to the members of ``base`` to accept the view."""

    base: View
    ballot: Ballot
    view: View
    dead: tuple[str, ...]


class Accepted(ArrayStruct, frozen=True, tag=True):
    """Phase 2: answer of a member to Accept."""

    epoch: int
    ballot: Ballot


class Abandon(ArrayStruct, frozen=True, tag=True):
    """End of a ballot by its proposer, because no change is needed or possible yet."""

    epoch: int
    ballot: Ballot


class Found(ArrayStruct, frozen=True, tag=True):
    """Request to the processes that are at the slots now to consent to a view of exactly these."""

    ballot: Ballot
    members: tuple[Member, ...]


class Consent(ArrayStruct, frozen=True, tag=True):
    """Answer of a process that knows no living member of a view.

    Args:
        epoch: newest epoch that the sender knows
    """

    epoch: int
    ballot: Ballot


class Install(ArrayStruct, frozen=True, tag=True):
    """Decided view."""

    view: View


class Leaving(ArrayStruct, frozen=True, tag=True):
    """Message that the sender leaves, at once or at a boundary.

    Args:
        expelled: reason, if the sender was asked to leave
    """

    at_boundary: bool
    expelled: str = ""


class Expel(ArrayStruct, frozen=True, tag=True):
    """Request to leave this epoch at once, because the sender waits for the receiver."""

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
    """Error for bytes that are not a message."""


def to_plain(message: Message) -> list[Any]:
    """Return a message as a list for JSON: its kind, then its fields."""
    return msgspec.to_builtins(message)


def from_plain(value: Any) -> Message:
    """Return the message that ``to_plain`` wrote.

    Raises:
        Malformed: the value is not a message
    """
    return _convert(value, Message)


def _convert(value: Any, kind: Any) -> Any:
    try:
        converted = msgspec.convert(value, kind)
        # Fields with defaults must not be missing: the sender has another version.
        is_complete = msgspec.json.encode(converted) == msgspec.json.encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Malformed(f"no message: {error}") from error
    if not is_complete:
        raise Malformed("no message: a field is missing")
    return converted


def slots_of(value: Any) -> set[int]:
    """Return the slots of all members in a message or in a part of one."""
    if isinstance(value, Member):
        return {value.slot}
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    return set().union(*map(slots_of, value)) if isinstance(value, tuple) else set()


def member_to_plain(member: Member) -> list[Any]:
    """Return a member in JSON's types."""
    return msgspec.to_builtins(member)


def member_from_plain(value: Any) -> Member:
    """Return the member that ``member_to_plain`` wrote.

    Raises:
        Malformed: the value is not a member
    """
    return _convert(value, Member)


def dumps(value: Any) -> bytes:
    """Return a value as JSON."""
    return msgspec.json.encode(value)


def loads(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        Malformed: the bytes are not JSON
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Malformed("no JSON") from error


class Send(NamedTuple):
    """Message to the process at a slot's address."""

    slot: int
    message: Message


class Verify(NamedTuple):
    """Request to connect to a slot's address again, to find out which process is there now."""

    slot: int


class Installed(NamedTuple):
    """Event: this process is a member of the view, which may have a boundary."""

    view: View


class ViewEnding(NamedTuple):
    """Event: another view will follow the present one at once, because a member failed."""

    view: View
    why: str


class MemberEvicted(NamedTuple):
    """Event: the job continued without this process. ``rejoin`` makes it a new member."""

    view: View


class Left(NamedTuple):
    """Event: this process has left as it requested, with a boundary after that step."""

    view: View


Output = Union[Send, Verify, Installed, ViewEnding, MemberEvicted, Left]
