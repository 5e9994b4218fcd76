"""Print the release notes of a tag: its section of CHANGELOG.md.

    tools/release_notes.py v0.1.0

It fails if the tag is not the version in python/hipress/__init__.py, or if the changelog has no
text for that version. The release workflow runs it before it builds anything.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(tag: str) -> str:
    """Return the notes for a tag, or exit with a message."""
    package = (ROOT / "python" / "hipress" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE)[1]
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, but the version is {version}: expected the tag v{version}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = section(changelog, version)
    if not notes:
        sys.exit(f"CHANGELOG.md has no section for version {version}: expected '## {version}'")
    return notes


def section(changelog: str, version: str) -> str:
    """Return the text below a version's heading, up to the next version. Empty: there is none."""
    heading = rf"^## \[?{re.escape(version)}\]?(?![\w.]).*\n"
    found = re.search(rf"{heading}((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/release_notes.py TAG")
    print(main(sys.argv[1]))
