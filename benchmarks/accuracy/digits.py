"""Training of the demo's network as a measured job."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import jobs
from harness import ROOT
from harness.netns import ShapedNetwork

DIGITS = ROOT / "examples" / "digits"
sys.path.insert(0, str(DIGITS))

import demo  # noqa: E402


def train(
    options: list[str],
    servers: int,
    ours: bool = True,
    network: ShapedNetwork | None = None,
    priority: bool = False,
) -> tuple[list[dict[str, Any]], int]:
    """Run one job of 4 workers; return its records, and the number of different final weights."""
    with tempfile.TemporaryDirectory(prefix="hipress-digits-") as folder:
        output = Path(folder) / "run.jsonl"
        command = [sys.executable, str(DIGITS / "train.py"), *options, "--output", str(output)]
        jobs.kvstore_job(
            command,
            4,
            servers,
            network,
            {"OMP_NUM_THREADS": "1"},
            timeout=300,
            boot=ours,
            priority=priority,
        )
        return demo.read_records(output), len(set(demo.read_weights(output, 4)))
