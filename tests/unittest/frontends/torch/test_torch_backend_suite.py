"""PyTorch's own tests of distributed backends pass on the backend "hipress".

PyTorch's tests need the package expecttest, which `make test-torch-latest` installs.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import base_environment

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's own tests need expecttest")

SUITE = Path(__file__).parents[2] / "torch_distributed_suite.py"


@pytest.mark.timeout(600)
def test_pytorchs_own_tests_pass_on_the_backend(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as output:
        ended = subprocess.run(
            [sys.executable, str(SUITE)],
            env=base_environment(),
            cwd=tmp_path,
            timeout=570,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    text = log.read_text(errors="replace")
    assert ended.returncode == 0, text[-20_000:]
    ran = int(re.search(r"^Ran (\d+) tests", text, re.MULTILINE)[1])
    skipped = int(re.search(r"^OK \(skipped=(\d+)\)", text, re.MULTILINE)[1])
    assert ran - skipped > 50  # most tests are for GPUs
