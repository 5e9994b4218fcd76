"""What elastic training raises."""

from __future__ import annotations

from hipress.errors import HipressError


class ElasticError(HipressError):
    """No view in time, or a setting is wrong; the message is a sentence for the user."""

    __module__ = "hipress.elastic"


class Stranger(Exception):
    """The other side of a connection is not a process of this job; the text gives the reason."""


class Evicted(ElasticError):
    """The others went on without this process; it may ``join`` again, as a new member."""

    __module__ = "hipress.elastic"


class TrainingOver(ElasticError):
    """The others have come to the end of training, while this process waited to take part."""

    __module__ = "hipress.elastic"


class ViewChanged(ElasticError):
    """What was waited for belongs to a view that has ended."""

    __module__ = "hipress.elastic"
