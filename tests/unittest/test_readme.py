"""The examples in README.md run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT
from harness.launch import run
from harness.marks import needs_tensorflow

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def example(text: str) -> str:
    """The one example that holds a text."""
    (found,) = [code for code in EXAMPLES if text in code]
    return found


def said(status: object, out: str, err: str) -> str:
    """What a process said, for the message of an assertion."""
    return f"exit status {status}\n--- its output:\n{out}\n--- its errors:\n{err}"


@pytest.mark.parametrize(("text", "printed"), [
    ("kv.set_gradient_compression(", r"worker [01] of 2: .* (\d+) bytes pushed"),
    ("gluon.Trainer(", r"loss (\d+\.\d+)"),
])
def test_example_runs_on_two_workers(tmp_path: Path, text: str, printed: str):
    pytest.importorskip("mxnet")
    (tmp_path / "train.py").write_text(example(text))
    launch = run(["-n", "2", "-s", "1", "--timeout", "120", sys.executable, "train.py"],
                 cwd=tmp_path)
    output = said(launch.process.returncode, launch.out, launch.err)
    assert launch.process.returncode == 0, output
    values = [float(value) for value in re.findall(printed, launch.out)]
    assert len(values) == 2, output
    if "bytes pushed" in printed:  # a tenth of what 10 pushes of 4 MB would be, at most
        assert all(0 < value < 4e6 for value in values), output


@needs_tensorflow
def test_tensorflow_example_runs_on_two_workers(tmp_path: Path):
    (tmp_path / "train.py").write_text(example("hvd.DistributedOptimizer("))
    launch = run(["-n", "2", "-s", "1", "--timeout", "150", sys.executable, "train.py"],
                 cwd=tmp_path)
    output = said(launch.process.returncode, launch.out, launch.err)
    assert launch.process.returncode == 0, output
    assert len(re.findall(r"loss \d+\.\d+\n", launch.out)) == 2, output


def test_pytorch_example_runs_on_two_ranks(tmp_path: Path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(example("hipress.torch.compress("))
    # A file for each rank: in one pipe the lines of two processes may lie in each other.
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               "--redirects=3", f"--log-dir={tmp_path}", "train.py"]
    try:
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True,
                              text=True, timeout=150)
    except subprocess.TimeoutExpired as late:  # whose output is bytes, whatever text= is
        out, err = ((pipe or b"").decode(errors="replace") for pipe in (late.stdout, late.stderr))
        pytest.fail(said(f"not known: it took more than {late.timeout:g} s", out, err))
    printed, errors = ([path.read_text() for path in sorted(tmp_path.rglob(f"std{kind}.log"))]
                       for kind in ("out", "err"))
    output = said(done.returncode, "\n".join(printed), "\n".join([done.stderr, *errors]))
    assert done.returncode == 0, output
    assert len(printed) == 2, output
    assert all(re.fullmatch(r"loss \d+\.\d+\n", text) for text in printed), output


def test_options_are_the_launchers():
    from hipress.launcher.cli import make_parser

    known = {name for action in make_parser()._actions for name in action.option_strings}
    table = README[README.index("`tools/launch.py` (as MXNet's"):README.index("Environment:")]
    named = set(re.findall(r"`(--?[a-z][a-z-]*)", "\n".join(
        line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))))
    assert named and named <= known


def test_links_and_make_targets_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?\bmake ([a-z]+)\b", README):
        if target in ("demo", "test", "bench", "cuda"):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE)
