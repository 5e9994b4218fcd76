"""Errors of CompLL: in source text, in the compilation of generated code, and in payloads."""

from __future__ import annotations

from typing import NamedTuple


class Pos(NamedTuple):
    """A place in a source text; both counted from 1."""

    line: int
    column: int


class CompileError(ValueError):
    """Error in a source text, with its line, a caret under the column and the expected text.

    Args:
        message: One clear sentence, without the place.
        pos: Its place; None if the error belongs to the whole file.
        source: The text, for the line that is shown.
        path: The file's name as it is to be printed.
    """

    def __init__(
        self, message: str, pos: Pos | None = None, source: str = "", path: str = "<text>"
    ) -> None:
        self.message, self.pos = message, pos
        text = f"{path}: error: {message}"
        if pos is not None:
            text = f"{path}:{pos.line}:{pos.column}: error: {message}"
            lines = source.splitlines()
            if 1 <= pos.line <= len(lines):
                line = lines[pos.line - 1].replace("\t", " ")
                text += f"\n    {line}\n    {' ' * (pos.column - 1)}^"
        super().__init__(text)

    def located(self, source: str, path: str) -> CompileError:
        """Return the same error with the text and the file it belongs to."""
        return CompileError(self.message, self.pos, source, path)


def expect(condition: object, message: str, pos: Pos | None = None) -> None:
    """Raise a CompileError unless a condition holds."""
    if not condition:
        raise CompileError(message, pos)


class BuildError(RuntimeError):
    """A compiler is missing or refused generated code, or the cache cannot be used."""


class PayloadError(ValueError):
    """A payload that no encoder could have made."""
