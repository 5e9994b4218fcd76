"""Provider of package metadata: the README with absolute links, and the URLs of the repository.

The environment variable HIPRESS_REPOSITORY_URL, for example https://github.com/owner/name, is the
only place for the address. The release workflow sets it. An sdist keeps it in PKG-INFO, for wheels
that are built from the sdist. Without it there are no URLs, and links stay relative.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)")


def repository_url() -> str:
    """Return the repository's address without a slash at its end, or an empty string."""
    url = os.environ.get("HIPRESS_REPOSITORY_URL", "")
    if not url and Path("PKG-INFO").exists():
        information = Path("PKG-INFO").read_text(encoding="utf-8")
        found = re.search(r"^Project-URL: Repository, (.+)$", information, re.MULTILINE)
        url = found[1] if found else ""
    return url.rstrip("/")


def absolute_links(text: str, url: str, version: str) -> str:
    """Return Markdown text whose relative links point to files of the release's tag."""

    def absolute(match: re.Match[str]) -> str:
        image, label, path = match.groups()
        return f"{image}{label}({url}/{'raw' if image else 'blob'}/v{version}/{path})"

    return LINK.sub(absolute, text)


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `readme` and `urls`."""
    url, version = repository_url(), project["version"]
    text = Path("README.md").read_text(encoding="utf-8")
    urls = {}
    if url:
        text = absolute_links(text, url, version)
        urls = {
            "Repository": url,
            "Documentation": f"{url}/blob/v{version}/docs/index.md",
            "Changelog": f"{url}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{url}/issues",
        }
    return {"readme": {"content-type": "text/markdown", "text": text}, "urls": urls}
