"""Examples of docs/reference/operators.md, run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/operators.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("needs", "example", "check"),
    [
        ("numpy", EXAMPLES[0], "assert (decoded != 0).sum() == 120 and checkpoint['step'] == 2"),
        ("torch", EXAMPLES[1], "assert (decoded + residual - gradient / 2).abs().max() < 1e-5"),
        (
            "mxnet",
            EXAMPLES[2],
            "assert abs(decoded + residual - gradient).max() < 1e-5\n"
            "assert abs(total - 2 * decoded).max() < 1e-5",
        ),
    ],
)
def test_an_example_runs(needs, example, check):
    pytest.importorskip(needs, exc_type=ImportError)
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", example + check],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert result.returncode == 0, result.stderr
