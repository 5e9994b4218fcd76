"""The errors of this package: one hierarchy, whose attributes programs decide by.

Errors of other libraries that have only a text are classified in one place of each front end:
``hipress/torch/errors.py`` does for those of Gloo.
"""

from __future__ import annotations

import enum
from typing import TypeVar

CAME_LATE = 79
"""What an elastic worker that waited to take part ends with, for its launcher, if the others have
come to the end of training; they may still save. No status of sysexits.h or of a shell's."""

_Kind = TypeVar("_Kind", bound=Exception)


Code = enum.IntEnum("Code", "NONE CALL JOB MEMORY", start=0)
"""Kinds of failures: of a call, the job, an allocation. See HipressErrorCode in ``c_api.h``."""

Cause = enum.IntEnum("Cause", "NONE DIED LEFT TIMED_OUT REPORTED NOT_COMPUTED", start=0)
"""Causes: events at the node at fault. See HipressCause in ``c_api.h``."""


class HipressError(RuntimeError):
    """The job failed, or a call was wrong; the message is a sentence for the user.

    Attributes:
        code: What has failed; ``Code.NONE`` if the error does not come from the native library.
        cause: What happened to the node at fault.
        role: Role of that node, "worker", "server" or "scheduler". None if no node is at fault, or
            it is not known.
        rank: Rank of that node among those of its role, as the sentence counts ranks, or None.
    """

    __module__ = (
        "hipress.runtime.node"  # where users import it from, and so what they read in a traceback
    )

    def __init__(
        self,
        sentence: str,
        *,
        code: Code = Code.NONE,
        cause: Cause = Cause.NONE,
        role: str | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.code, self.cause, self.role, self.rank = code, cause, role, rank

    def as_kind(self, kind: type[_Kind], sentence: str | None = None) -> _Kind:
        """Return this error as an exception of another class, with the same attributes.

        Args:
            kind: The class. It takes a sentence.
            sentence: Another text.
        """
        error = kind(str(self) if sentence is None else sentence)
        vars(error).update(vars(self))
        return error


def not_installed(error: ModuleNotFoundError, framework: str, sentence: str) -> ImportError:
    """What to raise when the import of a framework fails: the sentence, if it is not installed.

    :param error: what the import raised; it is returned if the framework lacks something itself
    """
    if error.name != framework:
        return error
    return ModuleNotFoundError(sentence, name=framework)
