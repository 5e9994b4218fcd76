"""Exceptions of elastic training."""

from __future__ import annotations

from hipress.errors import HipressError


class ElasticError(HipressError):
    """Failure to form a view in time, or a wrong setting. The message is for the user."""

    __module__ = "hipress.elastic"


class Stranger(Exception):
    """Error for a connection to a process that is not in this job. The text gives the reason."""


class Evicted(ElasticError):
    """Error of a process that the job continued without. It may ``join`` again as a new member."""

    __module__ = "hipress.elastic"


class TrainingOver(ElasticError):
    """Error of a process that waited to take part when the members reached the end of training."""

    __module__ = "hipress.elastic"


class ViewChanged(ElasticError):
    """Error of an operation that belongs to a view that has ended."""

    __module__ = "hipress.elastic"
