"""What a step of generated CUDA is, and how large its vectors can become."""

from __future__ import annotations

from dataclasses import dataclass, field

from hipress.compll.ir.ir import Function, Instr
from hipress.compll.passes.payload_size import Layout


def indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


@dataclass
class Step:
    """What all blocks do at once, and what the last one does afterwards.

    :ivar domain: a number of elements that says how many blocks are of use
    :ivar each: elements of a block's share
    :ivar joins: of all threads of the last block
    :ivar serial: of its first thread
    :ivar needs: ids of the numbers that it uses
    :ivar counts: it counts bits of a payload's mask, which say how large a later field is
    """

    domain: Instr | None = None
    each: int = 8192
    most_blocks: str = ""
    body: list[str] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)
    serial: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)
    defines: set[int] = field(default_factory=set)
    key: bool = False
    scatters: str = ""
    counts: bool = False


class Bounds(Layout):
    """Upper bounds of vectors' sizes, from n and the parameters."""

    def __init__(self, function: Function) -> None:
        self.function, self.body, self.fixed = function, [], True
        self.known: dict[int, Instr] = {}

    def bound(self, size: Instr) -> Instr:
        if size.id not in self.known:
            self.known[size.id] = self._bound(size)
        return self.known[size.id]

    def _bound(self, size: Instr) -> Instr:
        if self.function.kind == "decode" and not self.is_pure(size):
            # A field's count; the program requires that it is at most n.
            return self._emit("n", [])
        return super().bound(size)
