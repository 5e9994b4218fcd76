"""Check that no comment line of C++, CMake, shell and YAML has more than 100 characters.

ruff checks Python's. Usage: comment_width.py FILE_OR_FOLDER...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUFFIXES = {".cc", ".cmake", ".cll", ".cu", ".cuh", ".h", ".sh", ".yaml", ".yml"}
NAMES = {"CMakeLists.txt", "Dockerfile", "Makefile"}
COMMENT = re.compile(r"\s*(//|/\*|\*|#(?!include|if|define|error|pragma|!))")
MAX_WIDTH = 100


def main() -> None:
    wide = []
    for argument in map(Path, sys.argv[1:]):
        for file in sorted(argument.rglob("*")) if argument.is_dir() else [argument]:
            if file.suffix in SUFFIXES or file.name in NAMES:
                lines = file.read_text().splitlines()
                wide += [
                    f"{file}:{number}: comment of {len(line)} characters"
                    for number, line in enumerate(lines, 1)
                    if len(line) > MAX_WIDTH and COMMENT.match(line)
                ]
    if wide:
        sys.exit("\n".join([*wide, f"A comment line has at most {MAX_WIDTH} characters."]))


if __name__ == "__main__":
    main()
