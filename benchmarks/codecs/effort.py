"""Lines of code for each algorithm: its CompLL source, and other projects' files for the same.

Without arguments, CompLL's specs; else files, or parts of them (FILE:FROM-TO). A line counts if
something is on it besides blanks, comments and (Python) documentation strings.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from typing import Annotated

import typer

from harness import ROOT

SPECS = ROOT / "python/hipress/compression/compiler/specs"


def count_c(text: str) -> int:
    """Lines of C, C++, CUDA or CompLL; a text in quotes is code, whatever it looks like."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else "\n" * match[0].count("\n")

    return sum(bool(line.strip()) for line in pattern.sub(blank, text).splitlines())


def count_python(text: str) -> int:
    """Lines of Python on which a token begins or goes on, documentation strings apart."""
    layout = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
    lines: set[int] = set()
    begins = True  # of a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in layout:
            begins = begins or token.type == tokenize.NEWLINE
            continue
        if not (begins and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
        begins = False
    return len(lines)


def count(name: str) -> int:
    """Of a file, or of the lines FROM to TO of it."""
    path, _, span = name.partition(":")
    text = Path(path).read_text()
    if span:
        first, last = map(int, span.split("-"))
        text = "\n".join(text.splitlines()[first - 1 : last])
    return count_python(text) if path.endswith(".py") else count_c(text)


def main(files: Annotated[list[str], typer.Argument()] = []) -> None:  # noqa: B006
    for name in files or map(str, sorted(SPECS.glob("*.cll"))):
        print(f"{count(name):5}  {Path(name).name}")
    if files:
        print(f"{sum(map(count, files)):5}  together")
