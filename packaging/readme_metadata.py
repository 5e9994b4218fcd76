"""Provider of package metadata: the README with absolute links, and the URLs of the repository.

The environment variable HIPRESS_REPOSITORY_URL, for example https://github.com/owner/name, is the
only place for the address. The release workflow sets it. An sdist keeps it in PKG-INFO, for wheels
that are built from the sdist. Without it there are no URLs, and links stay relative.

    python packaging/readme_metadata.py dist/*

checks files before an upload: it fails if the description of one of them has relative links.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import zipfile
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


def read_metadata(file: Path) -> str:
    """Return the text of a wheel's METADATA or of an sdist's PKG-INFO."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return wheel.read(name).decode()
    with tarfile.open(file) as sdist:
        member = sdist.extractfile(file.name.removesuffix(".tar.gz") + "/PKG-INFO")
        assert member is not None
        return member.read().decode()


def check(files: list[Path]) -> list[str]:
    """Return a sentence for each file whose description has relative links."""
    problems = []
    for file in files:
        links = LINK.findall(read_metadata(file))
        if links:
            problems.append(
                f"{file.name}: relative links in its description, for example {links[0][2]}: "
                "build it with HIPRESS_REPOSITORY_URL"
            )
    return problems


if __name__ == "__main__":
    sys.exit("\n".join(check([Path(name) for name in sys.argv[1:]])) or None)
