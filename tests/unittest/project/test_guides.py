"""The Python code of the guides runs as printed."""

from __future__ import annotations

import builtins
import inspect
import os
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from unittest import mock

import pytest

from harness import ROOT
from harness.launch import run

GUIDES = ROOT / "docs" / "guides"


def code_blocks(page: str) -> list[str]:
    """Return the Python blocks of a guide."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [textwrap.dedent(code) for code in found]  # blocks in lists are indented


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


@pytest.mark.slow
def test_script_of_checkpoints_continues(tmp_path: Path):
    """The second job of the guide's script continues where the first one ended.

    Cost: Two jobs, whose two ranks each import PyTorch.
    """
    pytest.importorskip("torch")
    (code,) = scripts("checkpoints.md", "dcp.save(")
    first, second = (run_with_torchrun(tmp_path, code) for _ in range(2))
    losses = re.findall(r"step (\d+): loss (\d+\.\d+)", first + second)
    assert [step for step, _ in losses] == ["20", "40", "60", "80"]
    values = [float(loss) for _, loss in losses]
    assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_script_of_survive_failures_trains(tmp_path: Path):
    """The elastic script of the guide runs with two workers; fewer steps than printed.

    Cost: Two workers import PyTorch, as a user's do.
    """
    pytest.importorskip("torch")
    (code,) = scripts("survive-failures.md", "elastic.State(")
    assert "STEPS, BATCH = 10_000, 240" in code
    (tmp_path / "train.py").write_text(code.replace("10_000", "500"))
    command = ["--elastic", "-n", "2", "--timeout", "120", sys.executable, "train.py"]
    launch = run(command, cwd=tmp_path)
    assert launch.process.returncode == 0, f"{launch.out}\n{launch.err}"
    assert "step 500: 2 workers, loss" in launch.out


class Names(dict):
    """Names of a block that is not a complete script: HiPress's, and placeholders."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, None) or self.setdefault(name, mock.MagicMock(name=name))


def autospec(module: types.ModuleType) -> mock.NonCallableMagicMock:
    """Return a module whose functions and classes only check their arguments."""
    names = [name for name in dir(module) if not name.startswith("_")]
    names += [name for name in getattr(module, "__all__", []) if name not in names]
    found = {name: getattr(module, name) for name in names}
    specs = {
        name: mock.create_autospec(value)
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    return mock.NonCallableMagicMock(spec_set=list(specs), **specs)


@pytest.mark.parametrize("page", sorted(path.name for path in GUIDES.glob("*.md")))
def test_blocks_call_functions_that_exist(page: str):
    torch = pytest.importorskip("torch")
    import hipress
    import hipress.torch
    import hipress.torch.elastic

    fake = types.SimpleNamespace(
        torch=autospec(hipress.torch), CompressionConfig=hipress.CompressionConfig
    )
    for code in code_blocks(page):
        compiled = compile(code, page, "exec")
        if not re.search(r"^(import|from) ", code, re.MULTILINE):
            elastic = autospec(hipress.torch.elastic)
            if "state = elastic.State(\n    net" in code:  # those of Gluon and Keras
                elastic = mock.MagicMock()
            exec(compiled, {}, Names(hipress=fake, elastic=elastic, torch=mock.MagicMock(torch)))


def test_guide_lists_the_methods_of_type_auto():
    from hipress.autotune.methods import METHODS

    text = (GUIDES / "choose-a-compression.md").read_text(encoding="utf-8")
    (sgd,) = re.findall(r"^\| `torch\.optim\.SGD`.*\| (.*) \|$", text, re.MULTILINE)
    (adam,) = re.findall(r"^\| Adam, AdamW, every other.*\| (.*) \|$", text, re.MULTILINE)

    def listed(row: str) -> list[tuple[str, int]]:
        found = re.findall(r"`(\w+)` with ((?:rank )?[\d, or]+)", row)
        return [(name, int(number)) for name, text in found for number in re.findall(r"\d+", text)]

    codecs = [each for each in METHODS if each.params]
    expected = [(each.type, next(iter(each.params.values())), each.feedback) for each in codecs]
    assert listed(sgd) == [(name, number) for name, number, _ in expected]
    assert listed(adam) == [(name, number) for name, number, feedback in expected if not feedback]
