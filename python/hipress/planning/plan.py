"""Plan files (SeCoPaPlan.txt), and the gradient lists from which they are made.

A plan has one line per gradient, ``name,size,y|n,K``: whether to compress it, and its number of
partitions. ``name,y|n,K`` is also read. Blank lines and lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from hipress.base import files

MAX_PARTITIONS = 1 << 20


class PlanError(ValueError):
    """Plan or gradient list that cannot be read. The message names file and line."""


@dataclass(frozen=True)
class Decision:
    """A decision about one gradient."""

    compress: bool
    partitions: int
    """Number of partitions of the gradient, at least 1."""
    size: int | None = field(default=None, compare=False)
    """Elements of the planned gradient, if known."""

    def check(self, name: str, size: int) -> None:
        """Check that this decision is about a gradient of so many elements."""
        if self.size not in (None, size):
            raise ValueError(
                f"the plan is of another model: {name!r} has {self.size} elements there, and "
                f"{size} here"
            )


@dataclass(frozen=True)
class GradientSize:
    """A gradient by name, and its size in float32 elements."""

    name: str
    size: int


def some(names: Collection[str]) -> str:
    """Return the first five names, for messages."""
    return ", ".join(list(names)[:5]) + ", ..." * (len(names) > 5)


def check(decisions: Mapping[str, Decision], sizes: Mapping[str, int], what: str) -> None:
    """Check that a plan belongs to a model with gradients of these sizes."""
    unknown = sorted(set(decisions) - set(sizes))
    if unknown:
        raise ValueError(
            f"the plan has {unknown[0]!r}, which is no {what} of this model; there are "
            + some(sizes)
        )
    for name, decision in decisions.items():
        decision.check(name, sizes[name])


def load(path: str | os.PathLike[str]) -> dict[str, Decision]:
    """Return the decisions of a plan file, by gradient name in the order of the file."""
    plan: dict[str, Decision] = {}
    for where, fields in _rows(path, "plan"):
        if len(fields) not in (3, 4):
            raise PlanError(
                f"{where}: expected name,size,y|n,partitions or name,y|n,partitions, "
                f"got {len(fields)} fields"
            )
        name, (answer, partitions) = fields[0], fields[-2:]
        size = _positive(fields[1], where, "size") if len(fields) == 4 else None
        if answer not in ("y", "n"):
            raise PlanError(f"{where}: compress or not must be y or n, not {answer!r}")
        if name in plan:
            raise PlanError(f"{where}: gradient {name!r} is there twice")
        count = _positive(partitions, where, "number of partitions", MAX_PARTITIONS)
        plan[name] = Decision(answer == "y", count, size)
    if not plan:
        raise PlanError(f"{path}: the plan holds no gradient")
    return plan


def load_gradients(path: str | os.PathLike[str]) -> list[GradientSize]:
    """Return the gradients of an input file, lines of ``name,size``."""
    gradients: dict[str, GradientSize] = {}
    for where, fields in _rows(path, "list of gradients"):
        if len(fields) != 2:
            raise PlanError(f"{where}: expected name,size, got {len(fields)} fields")
        name, size = fields
        if name in gradients:
            raise PlanError(f"{where}: gradient {name!r} is there twice")
        gradients[name] = GradientSize(name, _positive(size, where, "size"))
    if not gradients:
        raise PlanError(f"{path}: the list holds no gradient")
    return list(gradients.values())


def save(path: str | os.PathLike[str], decisions: Iterable[tuple[GradientSize, Decision]]) -> None:
    """Replace a file atomically by lines ``name,size,y|n,K``."""
    lines = [
        f"{gradient.name},{gradient.size},{'y' if decision.compress else 'n'},{decision.partitions}"
        for gradient, decision in decisions
    ]
    files.write(path, "plan", "\n".join(lines) + "\n")


def _rows(path: str | os.PathLike[str], what: str) -> Iterable[tuple[str, list[str]]]:
    try:
        lines = files.read(path, what).splitlines()
    except files.FileError as error:
        raise PlanError(str(error)) from error
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        fields = [field.strip() for field in text.split(",")]
        where = f"{path}, line {number}"
        if not fields[0]:
            raise PlanError(f"{where}: the gradient has no name")
        yield where, fields


def _positive(text: str, where: str, what: str, limit: int = 1 << 62) -> int:
    # str.isdigit() alone accepts digits that int() does not.
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= limit:
        allowed = f"a whole number from 1 to {limit}"
        raise PlanError(f"{where}: the {what} must be {allowed}, not {text!r}")
    return int(text)
