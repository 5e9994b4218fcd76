"""Errors of this package: one hierarchy, with attributes for decisions of programs.

Errors of other libraries that have only a text are classified in one place per front end. For
example, ``hipress/torch/errors.py`` classifies those of Gloo.
"""

from __future__ import annotations

import enum
from typing import TypeVar

CAME_LATE = 79
"""Exit status of an elastic worker that waited to join when training ended, for its launcher. All
other workers may still be saving. No status of sysexits.h or of a shell has this number."""

_Kind = TypeVar("_Kind", bound=Exception)


Code = enum.IntEnum("Code", "NONE CALL JOB MEMORY", start=0)
"""Kinds of failures: of a call, the job, an allocation. See HipressErrorCode in ``c_api.h``."""

Cause = enum.IntEnum("Cause", "NONE DIED LEFT TIMED_OUT REPORTED NOT_COMPUTED", start=0)
"""Causes: events at the node at fault. See HipressCause in ``c_api.h``."""


class HipressError(RuntimeError):
    """Failure of the job, or a wrong call. The message is for users.

    Attributes:
        code: Kind of failure; ``Code.NONE`` if the error does not come from the native library.
        cause: Event at the node at fault.
        role: Role of that node, "worker", "server" or "scheduler". None if no node is at fault, or
            it is unknown.
        rank: Rank of that node among those of its role, as the message counts ranks, or None.
    """

    __module__ = "hipress.runtime.node"  # the users' import path, which tracebacks show

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
    """Return the error to raise when the import of a framework fails.

    Args:
        error: Error of the import. It is returned if the framework lacks a dependency.
        framework: Name of the framework's module.
        sentence: Message if the framework is not installed.
    """
    if error.name != framework:
        return error
    return ModuleNotFoundError(sentence, name=framework)
