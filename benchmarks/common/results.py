"""Results as JSON, with what is needed to judge them, and their tables."""

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
"""Where runs write."""
PUBLISHED = ROOT / "benchmarks" / "results"
"""Results whose tables the docs show."""
PACKAGES = ("numpy", "mxnet", "torch", "tensorflow")

console = Console(width=None if sys.stdout.isatty() else 140)


def machine() -> dict[str, Any]:
    """What numbers are measured on: processor, cores, kernel, versions, time, load."""

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
    """As JSON, in which a list of numbers or texts is one line."""
    text = json.dumps(result, indent=1, ensure_ascii=False, default=str)

    def flat(found: re.Match[str]) -> str:
        return "[" + re.sub(r"\n\s*", " ", found[1]).strip() + "]"

    return FLAT_LIST.sub(flat, text) + "\n"


class Record(dict):
    """What a run found: its machine and options, whatever it adds, and its tables.

    :param name: of the file
    :param options: of the run; its `locals()` when it begins
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name=name, machine=machine(), options=dict(options), tables={})

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[object]], title: str = "", key: str = ""
    ) -> None:
        """Print a table and keeps it; the first column is of names."""
        cells = [[str(cell) for cell in row] for row in rows]
        self["tables"][key] = {"title": title, "heads": list(heads), "rows": cells}
        shown = Table(title=title, title_justify="left")
        for at, head in enumerate(heads):
            shown.add_column(head, justify="right" if at else "left", no_wrap=not at)
        for row in cells:
            shown.add_row(*row)
        console.print(shown)

    def save(self) -> Path:
        """Write it to a file and say where."""
        WRITTEN.mkdir(parents=True, exist_ok=True)
        path = WRITTEN / f"{self['name']}.json"
        path.write_text(text_of(self), encoding="utf-8")
        console.print(f"saved {path.relative_to(ROOT)}", highlight=False)
        return path


def setting(rate: str, dilation: float) -> str:
    """What the names of results measured on such links end with."""
    return rate + (f"-dilation{dilation:g}" if dilation > 1 else "")


def verdict(holds: bool, text: str) -> None:
    """Say whether a claim holds."""
    console.print(f"{'[green]holds' if holds else '[red]missed'}[/]: {text}", highlight=False)
