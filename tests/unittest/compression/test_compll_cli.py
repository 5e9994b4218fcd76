"""The `compll` command: its output compiles, loads into frameworks and gives the same bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compll_helpers import DATA, gradient
from hipress.compression import compiler
from scripts import SCRIPTS

ROOT = Path(__file__).resolve().parents[3]
PATH = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
ENV = {**os.environ, "PYTHONPATH": PATH}


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        env=ENV,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def compll_command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "hipress.compression.compiler.cli", *arguments, cwd=cwd)


@pytest.fixture
def pse(tmp_path):
    """Provide the published sample where its README has it, and change to that folder."""
    (tmp_path / "pse").mkdir()
    for half in ("Encode", "Decode"):
        shutil.copy(DATA / f"TernGrad{half}.pse", tmp_path / "pse")
    return tmp_path


@pytest.mark.slow
def test_the_calls_of_the_published_readme(pse):
    """The calls of the published README run as printed: cd GCGen; GCGen.py pse/TernGradEncode.pse
    -b and so on."""
    script = ROOT / "tools/GCGen.py"
    for half in ("Encode", "Decode"):
        for flags in (["-b"], ["-w", "-r", "-f", "mxnet"]):
            result = run(sys.executable, script, f"pse/TernGrad{half}.pse", *flags, cwd=pse)
            assert result.returncode == 0, result.stderr
    files = {path.name for path in (pse / "output/TernGrad").iterdir()}
    assert files == {"TernGrad.cc", "TernGrad_mxnet.h", "TernGrad_mxnet.cc", "build.sh"}


def tutorial(folder: Path) -> Path:
    """Write the algorithm of docs/guides/write-a-codec.md to a file."""
    text = (ROOT / "docs/guides/write-a-codec.md").read_text()
    path = folder / "signmean.cll"
    path.write_text(text.split("```c\n")[1].split("```")[0])
    return path


@pytest.mark.slow
def test_the_tutorials_commands_run_and_the_network_learns(tmp_path):
    pytest.importorskip("mxnet", exc_type=ImportError)
    pytest.importorskip("sklearn")
    source = tutorial(tmp_path)
    page = (ROOT / "docs/guides/write-a-codec.md").read_text()
    text = page.split("```console\n")[1].split("```")[0]
    check, train = (line.removeprefix("$ ") for line in text.splitlines())
    for name, value in (
        (".venv/bin/python", sys.executable),
        ("$PWD/signmean.cll", str(source)),
        (" signmean.cll", f" {source}"),
        ("--epochs 3", "--epochs 2"),
    ):
        check, train = check.replace(name, value), train.replace(name, value)
    result = run("sh", "-c", check, cwd=ROOT)
    assert result.returncode == 0 and "NO" not in result.stdout, result.stdout + result.stderr
    result = run("sh", "-c", f"{sys.executable} {train}", cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    last = re.findall(
        r'"accuracy": ([\d.]+).*"pushed_bytes": (\d+).*"pushed_raw_bytes": (\d+)', result.stdout
    )[-1]
    assert float(last[0]) > 0.9 and int(last[2]) > 20 * int(last[1])


CHECKS = {
    "mxnet": SCRIPTS / "compll_cli" / "mxnet_operators.py",
    "torch": SCRIPTS / "compll_cli" / "torch_operators.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", CHECKS)
def test_what_it_writes_compiles_and_loads(tmp_path, framework):
    """Operators that `compll` writes for MXNet and PyTorch compile, load, and give the
    interpreter's bytes.

    Cost: The C++ compiler reads the framework's headers.
    """
    pytest.importorskip(framework, exc_type=ImportError)
    source = tutorial(tmp_path)
    flags = ("-b", "-w", "-r", "-f", framework, "-o", "out")
    result = compll_command(source, *flags, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = dict(line.split(": ", 1) for line in result.stdout.splitlines() if ": " in line)
    built = run("sh", "-c", lines["compile"], cwd=tmp_path)
    assert built.returncode == 0, built.stderr[-3000:]
    np.save(tmp_path / "x.npy", gradient(1000))
    result = run(sys.executable, CHECKS[framework], lines["load"], cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    found = np.load(tmp_path / "result.npz")
    oracle = compiler.Interpreter(compiler.compile_file(source), boost=0.5)
    payload = oracle.encode(gradient(1000), {})
    expected = oracle.decode(payload, 1000)
    assert found["payload"].tobytes() == payload
    assert found["decoded"].tobytes() == expected.tobytes()
    assert found["total"].tobytes() == (expected + expected).tobytes()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dgc", "encode_dgc(gradient, residual, velocity, step, ratio=0.001, "),
        ("2bit", "encode_2bit(gradient, residual, step, threshold=0.5, "),
        ("fp16", "encode_fp16(gradient) -> payload\n"),
        ("TernGrad", "encode_tern_grad(gradient, step, bitwidth=..., "),
    ],
)
def test_tensorflows_sources_name_states_and_parameters(tmp_path, name, call):
    """TensorFlow's sources name states and parameters. test_tensorflow_operators.py compiles and
    runs them where TensorFlow is installed."""
    source = DATA / "TernGradEncode.pse" if name == "TernGrad" else compiler.SPECS / f"{name}.cll"
    result = compll_command(source, "-b", "-w", "-r", "-f", "tensorflow", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    assert call in (tmp_path / f"{name}_tensorflow.h").read_text()
    registration = (tmp_path / f"{name}_tensorflow.cc").read_text()
    states = {"dgc": ["residual", "velocity", "step"], "2bit": ["residual", "step"]}
    states = {**states, "fp16": [], "TernGrad": ["step"]}[name]
    for state in states:
        assert f'.Output("new_{state}: ' in registration
    assert registration.count('.Output("new_') == len(states)
    assert ('.Output("size: int64")' in registration) == (name == "dgc")
    assert ('.Attr("ratio: float = 0.001")' in registration) == (name == "dgc")
    assert ('REGISTER_OP("Encode_2bit")' in registration) == (name == "2bit")


@pytest.mark.slow
def test_the_numpy_target_runs(tmp_path):
    result = compll_command(compiler.SPECS / "topk.cll", "-b", "--target", "numpy", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    code = (
        "import numpy as np, topk_numpy\n"
        "coder = topk_numpy.coder(ratio=0.5)\n"
        "print(coder.decode(coder.encode(np.float32([1, -4, 2, 3]), {}, 0), 4).tolist())\n"
    )
    result = run(sys.executable, "-c", code, cwd=tmp_path)
    assert result.stdout.strip() == "[0.0, -4.0, 0.0, 3.0]", result.stderr


@pytest.mark.slow
def test_bad_calls_are_one_sentence(tmp_path):
    lonely = tmp_path / "TernGradEncode.pse"
    shutil.copy(DATA / "TernGradEncode.pse", lonely)
    wrong = tmp_path / "wrong.cll"
    wrong.write_text("param floot x;")
    cases = [
        ((lonely, "-w"), "need an encoder and a decoder; there is not a decoder here"),
        ((wrong,), f'{wrong}:1:7: error: unexpected "floot"'),
        ((tmp_path / "none.cll",), "No such file"),
        ((compiler.SPECS / "tbq.cll", "-w", "--target", "numpy"), "are generated for --target cpu"),
    ]
    for arguments, sentence in cases:
        result = compll_command(*arguments)
        assert result.returncode == 1 and sentence in result.stderr, (arguments, result.stderr)
    assert compll_command(lonely, "-b", "-o", tmp_path / "out").returncode == 0
    assert compll_command(lonely, "-f", "keras").returncode == 2


@pytest.mark.slow
def test_it_shows_the_ir_and_checks_an_algorithm():
    result = compll_command(DATA / "TernGradEncode.pse", "--show-ir")
    assert "before the passes" in result.stdout and "after the passes" in result.stdout
    result = compll_command("check", compiler.SPECS / "tbq.cll", "-n", "1000")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "GB/s" in result.stdout and "NO" not in result.stdout


def test_the_cuda_target_is_source_for_nvcc(tmp_path):
    result = compll_command(compiler.SPECS / "onebit.cll", "-b", "--target", "cuda", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "compll/cuda/launch.cuh" in (tmp_path / "onebit.cu").read_text()
