"""Checks that Sphinx itself does not make; each finding is a warning, and so an error.

- README.md, CONTRIBUTING.md and CHANGELOG.md link to files and headings that exist.
- Every page that a source file names (docs/FOLDER/PAGE.md) exists.
- The page of environment variables names every variable that the sources read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("benchmarks", "examples", "include", "python", "src", "tests", "tools")
SUFFIXES = {".py", ".h", ".cc", ".cu", ".cuh", ".sh", ".cll", ".toml"}
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
VARIABLES = ROOT / "docs" / "reference" / "environment.md"
# Set by HiPress for its own processes.
INTERNAL_VARIABLES = {
    "HIPRESS_LAUNCHED",
    "HIPRESS_RANKS",
    "HIPRESS_JOB",
    "HIPRESS_VIEW",
}


def anchors(text: str) -> set[str]:
    """The anchors of a Markdown page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(words.replace(" ", "-"))
    return found


def broken_links(page: Path) -> Iterator[str]:
    """The relative links of a Markdown page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        path = page.parent / target if target else page
        if not path.exists():
            yield f"{page.name} links to {target}, which does not exist"
        elif anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"{page.name} links to {target}#{anchor}, a heading that does not exist"


def source_files() -> Iterator[Path]:
    """The files whose text is checked."""
    yield ROOT / "Makefile"
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path


def findings() -> Iterator[str]:
    """One sentence for each thing that is wrong."""
    for name in PAGES:
        yield from broken_links(ROOT / name)
    described = VARIABLES.read_text(encoding="utf-8")
    for path in source_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        where = path.relative_to(ROOT)
        for page in sorted(set(re.findall(r"\bdocs/[\w/-]+\.md\b", text))):
            if not (ROOT / page).exists():
                yield f"{where} names {page}, which does not exist"
        if where.parts[0] in ("python", "src"):
            for name in sorted(set(re.findall(r'"(HIPRESS_[A-Z_]+)"', text)) - INTERNAL_VARIABLES):
                if f"`{name}`" not in described:
                    yield f"{where} reads {name}, which {VARIABLES.relative_to(ROOT)} does not name"


def _check(app: Sphinx) -> None:
    logger = logging.getLogger(__name__)
    for finding in findings():
        logger.warning(finding)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("builder-inited", _check)
    return {"parallel_read_safe": True}
