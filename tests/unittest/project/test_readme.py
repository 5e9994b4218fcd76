"""Examples of README.md and of docs/start, run as they are printed."""

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
PAGES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
}
START = [text for path, text in PAGES.items() if path.parts[:2] == ("docs", "start")]


def example(text: str, pages: list[str]) -> str:
    """Return the one whole script of the pages that holds a text."""
    blocks = re.findall(r"```python\n(.*?)```", "".join(pages), re.DOTALL)
    (found,) = [code for code in blocks if text in code and "import" in code]
    return found


def example_with_named_codec(pages: list[str]) -> str:
    """Return the PyTorch script after the replacements that the page describes."""
    script = example("hipress.torch.compress(", pages)
    lines = re.findall(r"```python\n(compression = .*|print\(.*)\n```", "".join(pages))
    assert [line.split("(")[0] for line in lines] == [
        "compression = hipress.torch.compress",
        "print",
    ]
    for line in lines:
        start = re.escape(line.split("(")[0])
        script, count = re.subn(rf"^{start}\(.*$", line, script, flags=re.MULTILINE)
        assert count == 1
    return script


def said(status: object, out: str, err: str) -> str:
    """Return what a process printed, for the message of an assertion."""
    return f"exit status {status}\n--- its output:\n{out}\n--- its errors:\n{err}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "pages", "printed"),
    [
        ("kv.set_gradient_compression(", [README], r"worker [01] of 2: .* (\d+) bytes pushed"),
        ("gluon.Trainer(", START, r"loss (\d+\.\d+)"),
    ],
)
def test_example_runs_on_two_workers(tmp_path: Path, text: str, pages: list[str], printed: str):
    pytest.importorskip("mxnet")
    (tmp_path / "train.py").write_text(example(text, pages))
    launch = run(
        ["-n", "2", "-s", "1", "--timeout", "120", sys.executable, "train.py"], cwd=tmp_path
    )
    output = said(launch.process.returncode, launch.out, launch.err)
    assert launch.process.returncode == 0, output
    values = [float(value) for value in re.findall(printed, launch.out)]
    assert len(values) == 2, output
    if "bytes pushed" in printed:  # a tenth of what 10 pushes of 4 MB would be, at most
        assert all(0 < value < 4e6 for value in values), output


@pytest.mark.slow
@needs_tensorflow
@pytest.mark.parametrize("pages", [[README], START], ids=["README", "start"])
def test_tensorflow_example_runs_on_two_workers(tmp_path: Path, pages: list[str]):
    """The TensorFlow example of the documentation runs as printed.

    Cost: Two workers import TensorFlow and Keras, as a user's do.
    """
    script = example("hvd.DistributedOptimizer(", pages)
    if "print(" not in script:
        script += "print('loss', model.evaluate(images, labels, verbose=0))\n"
    (tmp_path / "train.py").write_text(script)
    launch = run(
        ["-n", "2", "-s", "1", "--timeout", "150", sys.executable, "train.py"], cwd=tmp_path
    )
    output = said(launch.process.returncode, launch.out, launch.err)
    assert launch.process.returncode == 0, output
    assert len(re.findall(r"loss \d+\.\d+\n", launch.out)) == 2, output


PYTORCH = "hipress.torch.compress("


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (example(PYTORCH, [README]), r"loss \d+\.\d+\n"),
        (example(PYTORCH, START), r"auto: (?s:.*)gradients, ms  measured(?s:.*)"),
        (example_with_named_codec(START), r"800000 bytes of gradients went compressed(?s:.*)"),
    ],
    ids=["README", "start", "named"],
)
def test_pytorch_example_runs_on_two_ranks(tmp_path: Path, script: str, expected: str):
    """The documentation's PyTorch example runs as printed.

    Cost: torchrun and its two ranks each import PyTorch, as a user's do.
    """
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(script)
    # A file for each rank: in one pipe the lines of two processes may lie in each other.
    command = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "--redirects=3",
        f"--log-dir={tmp_path}",
        "train.py",
    ]
    try:
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=150
        )
    except subprocess.TimeoutExpired as late:  # whose output is bytes, for any text=
        out, err = ((pipe or b"").decode(errors="replace") for pipe in (late.stdout, late.stderr))
        pytest.fail(said(f"not known: it took more than {late.timeout:g} s", out, err))
    printed, errors = (
        [path.read_text() for path in sorted(tmp_path.rglob(f"std{kind}.log"))]
        for kind in ("out", "err")
    )
    output = said(done.returncode, "\n".join(printed), "\n".join([done.stderr, *errors]))
    assert done.returncode == 0, output
    assert len(printed) == 2, output
    assert all(re.fullmatch(expected, text) for text in printed), output


def test_options_are_the_launchers():
    from hipress.launch.cli import make_parser

    known = {name for action in make_parser()._actions for name in action.option_strings}
    commands = re.findall(r"tools/launch\.py ([^`\n#]*)", "\n".join(PAGES.values()))
    # The options of the program that is launched come after its name.
    ours = " ".join(re.split(r"python|hipress ", command)[0] for command in commands)
    named = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", ours))
    machines = PAGES[Path("docs/guides/many-machines.md")]
    named |= {
        option
        for line in machines.splitlines()
        if line.startswith("| `-")
        for option in re.findall(r"`(--?[a-z][a-z-]*)", line.split("|")[1])
    }
    assert {"-n", "--topo", "--hipress", "--timeout", "--sync-dst-dir"} <= named
    assert named <= known


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {
        target
        for text in PAGES.values()
        for target in re.findall(r"(?:`|\$ )make ([a-z-]+)\b", text)
    }
    assert {"demo", "test", "docs"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_topologies_of_the_guide_are_right():
    from graph_checker import check
    from hipress.topology import topologies

    page = PAGES[Path("docs/guides/write-a-topology.md")]
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = []
    for block in blocks:
        if not re.search(r"^TOPOLOGY = ", block, re.MULTILINE):
            continue
        found = {}
        exec(block, found)
        name = found["TOPOLOGY"].name
        names.append(name)
        topologies.register(found["TOPOLOGY"])
        try:
            for workers in range(1, 9):
                check(topologies.build(name, 100_000, workers))
                # Several partitions, whose owners differ.
                check(topologies.build(name, 3_000_000, workers))
        finally:
            del topologies.TOPOLOGIES[name]
    assert names == ["hub", "pairs"]
