"""Results as JSON, with the data to judge them, and their tables."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness import ROOT

WRITTEN = ROOT / "output" / "benchmarks"
"""Folder of the results of runs."""
PUBLISHED = ROOT / "benchmarks" / "results"
"""Folder of the results whose tables the docs show."""
PACKAGES = ("numpy", "mxnet", "torch", "tensorflow")

console = Console(width=None if sys.stdout.isatty() else 140)


def machine() -> dict[str, Any]:
    """Return the conditions of a measurement: processor, cores, kernel, versions, time, load."""

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return ""

    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=ROOT, check=False)
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": commit.stdout.strip(),
        "load_before": round(os.getloadavg()[0], 2),
        "command": " ".join(sys.argv[1:]),
    }


FLAT_LIST = re.compile(r'\[\n((?:"(?:\\.|[^"\\])*"|[^"\[\]{}])*)\]')


def text_of(result: Mapping[str, Any]) -> str:
    """Return a result as JSON, with lists of numbers or texts on one line."""
    text = json.dumps(result, indent=1, ensure_ascii=False, default=str)

    def flat(found: re.Match[str]) -> str:
        return "[" + re.sub(r"\n\s*", " ", found[1]).strip() + "]"

    return FLAT_LIST.sub(flat, text) + "\n"


class Record(dict):
    """Result of a run: its machine, options, further values, and tables.

    Args:
        name: Name of the file.
        options: Options of the run: its `locals()` when it begins.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name=name, machine=machine(), options=dict(options), tables={})

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[object]], title: str = "", key: str = ""
    ) -> None:
        """Print and store a table, whose first column has names."""
        cells = [[str(cell) for cell in row] for row in rows]
        self["tables"][key] = {"title": title, "heads": list(heads), "rows": cells}
        shown = Table(title=title, title_justify="left")
        for at, head in enumerate(heads):
            shown.add_column(head, justify="right" if at else "left", no_wrap=not at)
        for row in cells:
            shown.add_row(*row)
        console.print(shown)

    def save(self) -> Path:
        """Write the result to a file and print its path."""
        WRITTEN.mkdir(parents=True, exist_ok=True)
        path = WRITTEN / f"{self['name']}.json"
        path.write_text(text_of(self), encoding="utf-8")
        console.print(f"saved {path.relative_to(ROOT)}", highlight=False)
        return path


def setting(rate: str, dilation: float) -> str:
    """Return the suffix of names of results that were measured on such links."""
    return rate + (f"-dilation{dilation:g}" if dilation > 1 else "")


def verdict(holds: bool, text: str) -> None:
    """Print whether a claim holds."""
    console.print(f"{'[green]holds' if holds else '[red]missed'}[/]: {text}", highlight=False)
