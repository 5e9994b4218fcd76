"""Output of `compll -f tensorflow`: it compiles, loads, and gives hipress.Compressor's bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compll_helpers import DATA
from harness.marks import needs_tensorflow
from hipress.compression import compiler

ROOT = Path(__file__).resolve().parents[4]

pytestmark = needs_tensorflow


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(
        list(map(str, command)),
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


@pytest.mark.slow(keep=1)
@pytest.mark.timeout(400)  # a minute of compiling, while other tests also use the processors
@pytest.mark.parametrize(
    ("source", "params"),
    [
        (compiler.SPECS / "onebit.cll", {}),
        (compiler.SPECS / "tbq.cll", {"threshold": 0.3}),
        (compiler.SPECS / "maxmin.cll", {"bits": 3, "seed": 5}),
        (compiler.SPECS / "dgc.cll", {"ratio": 0.1, "momentum": 0.5}),
        (DATA / "TernGradEncode.pse", {"bitwidth": 2}),  # the published sample, as printed
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_an_operator_equals_the_compressor(tmp_path, source, params):
    """TensorFlow operators that `compll` writes compile, and give the bytes of
    hipress.Compressor.

    Cost: The C++ compiler reads TensorFlow's headers for each operator. Each case compiles
    another one.
    """
    type = source.stem.removesuffix("Encode")
    written = run(
        sys.executable,
        "-m",
        "hipress.compression.compiler.cli",
        source,
        "-b",
        "-w",
        "-r",
        "-f",
        "tensorflow",
        "-o",
        f"output/{type}",
        cwd=tmp_path,
    )
    assert written.returncode == 0, written.stderr
    built = run("sh", f"output/{type}/build.sh", cwd=tmp_path)
    assert built.returncode == 0, built.stderr[-3000:]
    library = tmp_path / f"output/{type}/lib{type}_tensorflow.so"
    assert f"tf.load_op_library('{library}')" in written.stdout
    check = Path(__file__).parents[2] / "tensorflow_operators.py"
    checked = run(sys.executable, check, library, type, json.dumps(params), cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr[-3000:]
    if type == "dgc":  # the documentation's
        text = (ROOT / "docs/reference/operators.md").read_text()
        (example,) = [e for e in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "tf." in e]
        example += "assert tf.math.count_nonzero(decoded) == 10 and states[2][0] == 1\n"
        result = run(sys.executable, "-c", example, cwd=tmp_path)
        assert result.returncode == 0, result.stderr[-3000:]
