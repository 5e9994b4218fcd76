"""Generated text, as lists of lines."""

from __future__ import annotations

from collections.abc import Iterable


def flat(parts: Iterable) -> list[str]:
    """Return the lines of strings and of lists of lines, however nested."""
    found = []
    for part in parts:
        found += [part] if isinstance(part, str) else flat(part)
    return found


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return indented lines, where those of the preprocessor are unchanged."""
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


def block(head: str, *parts: object, end: str = "}") -> list[str]:
    """Return ``head {``, the parts (lines, or lists of them) indented, and ``end``."""
    return [f"{head} {{".lstrip(), *indent(flat(parts)), end]


def quoted(text: str) -> str:
    """Return a string literal of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
