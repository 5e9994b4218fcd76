"""The Python code of the guides runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT

GUIDES = ROOT / "docs" / "guides"


def code_blocks(page: str) -> list[str]:
    """Return the Python blocks of a guide."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def scripts(page: str, text: str = "dist.init_process_group(") -> list[str]:
    """Return the blocks of a guide that are complete scripts and contain a text."""
    return [code for code in code_blocks(page) if text in code and code.startswith("import ")]


def run_with_torchrun(folder: Path, script: str) -> str:
    """Run a script with two ranks, and return its output."""
    (folder / "train.py").write_text(script)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("first-training-on-two-machines.md", 1),
        ("migrate.md", 3),
    ],
)
def test_scripts_of_guide_run_on_two_ranks(tmp_path: Path, page: str, number: int):
    """Each complete PyTorch script of a guide trains with two ranks.

    Cost: torchrun and its two ranks each import PyTorch, as a user's do.
    """
    pytest.importorskip("torch")
    found = scripts(page)
    assert len(found) == number
    for code in found:
        output = run_with_torchrun(tmp_path, code)
        losses = [float(loss) for loss in re.findall(r"step \d+: loss (\d+\.\d+)", output)]
        assert len(losses) >= 2 and losses[-1] < losses[0], output
