"""The wheel of `make wheel`, installed where nothing else of this folder is on Python's path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


def run(*command: str | Path, site: Path, timeout: float = 100) -> str:
    """What a command prints that finds the installed package first."""
    env = {**os.environ, "PYTHONPATH": str(site), "HIPRESS_LIBRARY": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env,
                          cwd=site, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel is installed."""
    for module in ("scikit_build_core", "auditwheel"):
        pytest.importorskip(module)
    if not (ROOT / "build" / "CMakeCache.txt").exists() or not (ROOT / ".venv").exists():
        pytest.skip("nothing is built: run make")
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    environment = {**os.environ, "WHEELS": str(wheels)}
    # `timeout` ends what the script has started, too.
    command = ["timeout", "-k", "5", "200", ROOT / "tools" / "setup.sh", "wheel"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = wheels.iterdir()
    assert "py3-none-manylinux" in wheel.name
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", site, wheel], timeout=60, check=True)
    return site


def test_every_file_of_the_package_is_in_it(site: Path):
    source = ROOT / "python"
    files = [path.relative_to(source) for path in source.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    assert len(files) > 150
    assert not [str(path) for path in files if not (site / path).exists()]


def test_the_installed_package_is_the_one_that_is_used(site: Path):
    code = "import hipress, hipress._lib as l; print(hipress.__file__); print(l.lib._name)"
    found = run(sys.executable, "-c", code, site=site).split()
    assert found == [str(site / "hipress" / name) for name in ("__init__.py", "libhipress.so")]
    assert "onebit" in run(site / "bin" / "hipress", "codecs", site=site)


def test_readme_example_runs_under_the_installed_launcher(site: Path):
    pytest.importorskip("mxnet")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = [c for c in re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
               if "kv.set_gradient_compression(" in c]  # fmt: skip
    (site / "train.py").write_text(code)
    launch = [site / "bin" / "hipress-launch", "-n", "2", "-s", "1", "--timeout", "90"]
    out = run(*launch, sys.executable, "train.py", site=site)
    assert re.search(r"worker [01] of 2: .* bytes pushed", out), out


def test_a_codec_of_ones_own_is_compiled_by_the_installed_compiler(site: Path, tmp_path: Path):
    text = (ROOT / "docs/guides/write-a-codec.md").read_text(encoding="utf-8")
    (tmp_path / "mean.cll").write_text(text.split("```c\n")[1].split("```")[0])
    out = run(site / "bin" / "compll", "check", str(tmp_path / "mean.cll"), site=site)
    assert "200 of 200 random payloads refused" in out
