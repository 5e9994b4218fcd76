#!/usr/bin/env python3
"""Copy the headers of other projects that the native library needs into third_party.

    tools/vendor.py asio=/usr/include xxhash=xxHash-0.8.1 dmlc-core=dmlc-core-0.5/include

Each argument names a project of third_party and a folder with its headers. The copy contains the
headers that our sources include, and every header that these include under any condition, so it
serves other compilers and processors than the one at hand. third_party/README.md lists versions
and licenses; edit it after an update.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def included(file: Path) -> list[str]:
    """Return the paths that a file includes, as it writes them."""
    return INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace"))


def find_headers(source: Path) -> set[Path]:
    """Return the headers under `source` that our code needs, relative to it."""
    ours = [
        file
        for folder in ("include", "src")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".h", ".cc", ".cuh")
    ]
    waiting = [Path(name) for file in ours for name in included(file)]
    found: set[Path] = set()
    while waiting:
        header = waiting.pop()
        if header in found or not (source / header).is_file():
            continue
        found.add(header)
        for name in included(source / header):
            waiting += [Path(name), header.parent / name]
    return found


def main() -> None:
    for argument in sys.argv[1:]:
        name, _, folder = argument.partition("=")
        if not folder:
            sys.exit("usage: " + (__doc__ or "").split("\n\n")[1].strip())
        source, target = Path(folder), ROOT / "third_party" / name / "include"
        headers = find_headers(source)
        if not headers:
            sys.exit(f"vendor.py: {source} has no header that src or include needs")
        shutil.rmtree(target, ignore_errors=True)
        for header in sorted(headers):
            (target / header).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / header, target / header)
        print(f"{name}: {len(headers)} headers")


if __name__ == "__main__":
    main()
