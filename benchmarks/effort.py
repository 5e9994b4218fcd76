"""Lines of code for each algorithm: its CompLL source, and other projects' files for the same.

    python benchmarks/effort.py                             CompLL's specs
    python benchmarks/effort.py FILE ... [FILE:FROM-TO]     other files, or parts of them

A line counts if something is on it besides blanks, comments and (Python) documentation strings. The
table in docs/concepts/compll.md is made of these sums.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from pathlib import Path

SPECS = Path(__file__).resolve().parents[1] / "python/hipress/compll/specs"


def count_c(text: str) -> int:
    """Lines of C, C++, CUDA or CompLL; a text in quotes is code, whatever it looks like."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == '"' else "\n" * match[0].count("\n")

    return sum(bool(line.strip()) for line in pattern.sub(blank, text).splitlines())


def count_python(text: str) -> int:
    """Lines of Python on which a token begins or goes on, documentation strings apart."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
              tokenize.ENDMARKER, tokenize.ENCODING}  # fmt: skip
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


def main(names: list[str]) -> None:
    if names:
        for name in names:
            print(f"{count(name):5}  {name}")
        print(f"{sum(map(count, names)):5}  together")
        return
    for path in sorted(SPECS.glob("*.cll")):
        print(f"{count(str(path)):5}  {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
