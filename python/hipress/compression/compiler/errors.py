"""Errors of CompLL: in source text, in the compilation of generated code, and in payloads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pos:
    """A place in a source text; both counted from 1."""

    line: int
    column: int


class CompileError(ValueError):
    """Error in a source text, with its line, a caret under the column and the expected text.

    :param message: one clear sentence, without the place
    :param pos: where; None if the error belongs to the whole file
    :param source: the text, for the line that is shown
    :param path: the file's name as it is to be printed
    """

    def __init__(
        self, message: str, pos: Pos | None = None, source: str = "", path: str = "<text>"
    ) -> None:
        self.message, self.pos, self.source, self.path = message, pos, source, path
        super().__init__(self._text())

    def _text(self) -> str:
        if self.pos is None:
            return f"{self.path}: error: {self.message}"
        head = f"{self.path}:{self.pos.line}:{self.pos.column}: error: {self.message}"
        lines = self.source.splitlines()
        if not 1 <= self.pos.line <= len(lines):
            return head
        line = lines[self.pos.line - 1].replace("\t", " ")
        return f"{head}\n    {line}\n    {' ' * (self.pos.column - 1)}^"

    def located(self, source: str, path: str) -> CompileError:
        """Return the same error with the text and the file it belongs to."""
        return CompileError(self.message, self.pos, source, path)


class BuildError(RuntimeError):
    """A compiler is missing or refused generated code, or the cache cannot be used."""


class PayloadError(ValueError):
    """A payload that no encoder could have made."""
