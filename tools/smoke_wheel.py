#!/usr/bin/env python3
"""Check an installed HiPress in the Python that runs this file, and print a line for each check.

    python tools/smoke_wheel.py

It needs nothing but the installed package and, for the frameworks, this project's README.md. Each
check runs in a new folder, so that the source tree is not imported:

- the files, the version and the metadata of the package
- `hipress doctor`
- a job of two workers and a server that sums NumPy arrays, compressed and encrypted
- README.md's examples for PyTorch and MXNet, where these are installed
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

COMMANDS = Path(sysconfig.get_path("scripts"))
"""Folder with the commands that were installed with the package."""
LAUNCH = [COMMANDS / "hipress-launch", "-n", "2", "-s", "1", "--timeout", "90"]
SECONDS = 120
"""Time limit of each check."""


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Return what a command prints. It finds the installed package only."""
    env = {**os.environ, "PYTHONNOUSERSITE": "1", **environment}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=env,
        timeout=SECONDS,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise AssertionError(f"{command} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def check_package(folder: Path) -> str:
    """Check the files, the version and the native library."""
    code = (
        "import hipress, hipress.native.library as lib, pathlib\n"
        "folder = pathlib.Path(hipress.__file__).parent\n"
        "assert (folder / 'py.typed').exists()\n"
        "assert lib.library_path().parent == folder, lib.library_path()\n"
        "print(hipress.__version__, lib.version(), *lib.instruction_sets()[0])"
    )
    python, native, *codecs = run(sys.executable, "-c", code, folder=folder).split()
    assert python == native == metadata.version("hipress"), (python, native)
    libc = " ".join(platform.libc_ver())
    return f"version {python}, codecs for {', '.join(codecs)}, {libc}"


def check_doctor(folder: Path) -> str:
    """Run `hipress doctor`."""
    lines = run(COMMANDS / "hipress", "doctor", folder=folder).splitlines()
    (encryption,) = (line.split("encryption")[1].strip() for line in lines if "encryption" in line)
    return f"{len(lines)} lines, encryption: {encryption}"


def check_numpy(folder: Path) -> str:
    """Sum compressed NumPy arrays in a job of two workers and a server."""
    out = run(*LAUNCH, sys.executable, Path(__file__).resolve(), folder=folder, HIPRESS_TLS="on")
    found = re.findall(r"worker [01] sent (\d+) bytes instead of (\d+)", out)
    assert len(found) == 2, out
    return f"sent {found[0][0]} bytes instead of {found[0][1]}"


def run_node() -> None:
    """Run this process's role in the job of check_numpy."""
    import ssl  # loads Python's OpenSSL in addition to the wheel's

    import numpy as np

    from hipress.runtime.node import Node

    ssl.create_default_context()
    with Node() as node:
        if os.environ["DMLC_ROLE"] != "worker":
            node.serve()
            return
        node.set_gradient_compression({"type": "onebit", "min_size": 100})
        gradient, total = np.ones(100_000, np.float32), np.zeros(100_000, np.float32)
        node.init_array(0, total, "weight")
        for _ in range(5):
            node.pushpull(0, gradient, total).wait()
        assert np.allclose(total, 2), total
        stats = node.stats()
        sent, raw = stats["pushed_bytes"], stats["pushed_raw_bytes"]
        assert sent * 10 < raw, stats
        print(f"worker {node.rank} sent {sent} bytes instead of {raw}")


def readme_example(contains: str) -> str:
    """Return the README's Python example that contains a text."""
    readme = Path(__file__).resolve().parents[1] / "README.md"
    examples = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = (text for text in examples if contains in text)
    return example


def check_torch(folder: Path) -> str:
    """Run the README's example for PyTorch with torchrun."""
    (folder / "train.py").write_text(readme_example("hipress.torch.compress("), encoding="utf-8")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    out = run(*torchrun, "--nproc-per-node=2", "train.py", folder=folder, OMP_NUM_THREADS="1")
    # Words of two ranks' lines may lie in each other, but each number is one write.
    assert len(re.findall(r"\d\.\d{6,}", out)) == 2, out
    return f"torch {metadata.version('torch')}, README's example with 2 ranks"


def check_mxnet(folder: Path) -> str:
    """Run the README's example for MXNet with `hipress launch`."""
    (folder / "train.py").write_text(readme_example("kv.set_gradient_comp"), encoding="utf-8")
    out = run(*LAUNCH, sys.executable, "train.py", folder=folder)
    assert len(re.findall(r"worker [01] of 2: .* bytes pushed", out)) == 2, out
    return f"mxnet {metadata.version('mxnet')}, README's example with 2 workers and a server"


def main() -> None:
    print(f"Python {platform.python_version()} on {platform.machine()}", flush=True)
    checks: list[tuple[str, Callable[[Path], str]]] = [
        ("package", check_package),
        ("doctor", check_doctor),
        ("numpy", check_numpy),
        ("torch", check_torch),
        ("mxnet", check_mxnet),
    ]
    for name, check in checks:
        if name in ("torch", "mxnet") and importlib.util.find_spec(name) is None:
            print(f"  {name}: not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            print(f"  {name}: {check(Path(folder))}", flush=True)


if __name__ == "__main__":
    run_node() if "DMLC_ROLE" in os.environ else main()
