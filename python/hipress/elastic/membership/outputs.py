"""What the protocol's state machine asks its caller to do."""

from __future__ import annotations

from typing import NamedTuple, Union

from hipress.elastic.membership.messages import Message
from hipress.elastic.membership.view import View


class Send(NamedTuple):
    """A message for whatever process is at the slot's address."""

    slot: int
    message: Message


class Verify(NamedTuple):
    """Request to connect to a slot's address again, to find out which process is there now."""

    slot: int


class Installed(NamedTuple):
    """This process is a member of the view, which may have a boundary."""

    view: View


class Ending(NamedTuple):
    """The present view will be followed by another at once: a member failed."""

    view: View
    why: str


class Evicted(NamedTuple):
    """The others went on without this process. ``rejoin`` makes it a new member."""

    view: View


class Left(NamedTuple):
    """This process is no member any more, as it wished (with a boundary: after that)."""

    view: View


Output = Union[Send, Verify, Installed, Ending, Evicted, Left]
