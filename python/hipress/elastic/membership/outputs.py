"""Actions that the protocol's state machine requests from its caller."""

from __future__ import annotations

from typing import NamedTuple, Union

from hipress.elastic.membership.messages import Message
from hipress.elastic.membership.view import View


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


class Ending(NamedTuple):
    """Event: another view will follow the present one at once, because a member failed."""

    view: View
    why: str


class Evicted(NamedTuple):
    """Event: the job continued without this process. ``rejoin`` makes it a new member."""

    view: View


class Left(NamedTuple):
    """Event: this process has left as it requested, with a boundary after that step."""

    view: View


Output = Union[Send, Verify, Installed, Ending, Evicted, Left]
