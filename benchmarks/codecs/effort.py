"""Lines of code of each algorithm: its CompLL source, and other projects' equivalent files.

Without arguments, CompLL's specs; otherwise files, or parts of them (FILE:FROM-TO). A line counts
if it contains more than blanks, comments and (Python) documentation strings.
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
    """Return the number of lines of C, C++, CUDA or CompLL. Text in quotes is code."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else "\n" * match[0].count("\n")

    return sum(bool(line.strip()) for line in pattern.sub(blank, text).splitlines())


def count_python(text: str) -> int:
    """Return the number of lines of Python with a token, without documentation strings."""
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
    begins = True  # at the start of a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in layout:
            begins = begins or token.type == tokenize.NEWLINE
            continue
        if not (begins and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
        begins = False
    return len(lines)


def count(name: str) -> int:
    """Return the number of lines of a file, or of its lines FROM to TO."""
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
