"""The examples, the script in the documentation and `hipress bench`, run as torchrun would."""

import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed

ROOT = Path(__file__).resolve().parents[4]


def script(rank, path, arguments):
    """Run a script on this rank and return what it printed."""
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).parent))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()


SMALL_VGG = ["--image-size", "32", "--hidden", "256", "--width", "0.1", "--classes", "10"]
SMALL_VGG += ["--steps", "2", "--compression", "tbq", "--param", "threshold=0.001"]
RESNET = ["--model", "resnet50", "--image-size", "32", "--classes", "10", "--batch-size", "2"]
RESNET += ["--steps", "1", "--compression", "fp16", "--topology", "ring"]
TEXT = ["--steps", "3", "--width", "64", "--layers", "1", "--compression", "dgc"]
TEXT += ["--param", "ratio=0.01"]
FROZEN = ["--warmup-steps", "1", "--param", "warmup=0", "--param", "momentum=0.9"]

SHARED = ["--steps", "3", "--width", "64", "--layers", "1", "--compression", "onebit"]
SHARED += ["--warmup-steps", "1", "--shared-momentum", "0.9"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "losses"),
    [
        ("digits", ["--compression", "onebit", "--steps", "150"], 4),
        ("images", SMALL_VGG, 2),
        ("images", RESNET, 1),
        ("text", ["--model", "gpt", "--optimizer", "frozen", *FROZEN, *TEXT], 2),
        ("text", ["--model", "lstm", *TEXT], 2),
        ("text", ["--model", "gpt", "--optimizer", "frozen", *SHARED], 2),
        ("text", ["--model", "gpt", "--sync-every", "2", "--fragments", "2", *TEXT], 2),
    ],
)
def test_examples(name, arguments, losses):
    if name == "digits":
        pytest.importorskip("sklearn", reason="needs scikit-learn's digits")
    path = str(ROOT / "examples" / "torch" / f"{name}.py")
    first, second = run_ranks(script, 2, path, arguments, join=False, timeout=90)
    lines = [json.loads(line) for line in first.splitlines()]
    assert len(lines) == losses and second == ""
    assert all(line["loss"] == line["loss"] for line in lines)
    if name == "digits":
        assert lines[-1]["test_accuracy"] > 0.75


KEPT = []


def documented(rank, text):
    """Run a script of the documentation; return the model's bits."""
    found = {}
    # Gloo's destructor may wait for ever for a thread that waits for Python's lock (torch 2.13).
    KEPT.append(found)
    exec(compile(text, "docs/start/pytorch.md", "exec"), found)
    return [p.detach().numpy().tobytes() for p in found["model"].parameters()]


@pytest.mark.slow
def test_the_one_line_of_the_documentation():
    page = (ROOT / "docs/start/pytorch.md").read_text()
    text = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    named = text.replace("compress(model)", 'compress(model, "onebit")')  # as the page also shows
    plain = "\n".join(line for line in text.splitlines() if "compress" not in line)
    runs = [succeed(run_ranks(documented, 2, one, join=False)) for one in (text, named, plain)]
    assert runs[1] != runs[2]
    for weights in runs[0][0]:
        assert torch.isfinite(torch.frombuffer(bytearray(weights), dtype=torch.float32)).all()


def bench(rank, arguments):
    from hipress.cli.main import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main(["bench", "allreduce", *arguments])
    return printed.getvalue()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_bench_prints_nccl_tests_table(dtype):
    """`hipress bench` prints nccl-tests' table: bandwidths of what each column's all-reduce moves,
    whatever the row's type is."""
    arguments = ["-b", "4", "-e", "256K", "-f", "16", "-n", "2", "-w", "1", "-c", "fp16"]
    arguments += ["-d", dtype]
    first, second = run_ranks(bench, 2, arguments, join=False)
    rows = [line.split() for line in first.splitlines() if not line.startswith("#")]
    assert [int(row[0]) for row in rows] == [4, 64, 1024, 16384, 262144]
    assert all(len(row) == 13 for row in rows) and second == ""
    head = next(line for line in first.splitlines() if " redop " in line).split()
    assert head[5:] == ["time", "algbw", "busbw"] * 2 + ["time", "effbw", "error"]
    for row in rows:
        size, count = int(row[0]), int(row[1])
        assert size == count * (4 if dtype == "float" else 2)
        for bytes_of_one, at in ((4, 4), (2, 7)):
            time, algbw, busbw = (float(text) for text in row[at : at + 3])
            assert algbw == pytest.approx(bytes_of_one * count / time / 1e3, rel=0.1, abs=2e-3)
            assert busbw == pytest.approx(algbw, abs=2e-3)  # 2(N-1)/N of two ranks is 1
        time, effective = (float(text) for text in row[10:12])
        assert effective == pytest.approx(size / time / 1e3, rel=0.1, abs=2e-3)
        assert float(row[-1]) < 1e-3


def test_bench_refuses_what_it_cannot_do():
    from hipress.torch.bench import parse_size, sizes

    assert parse_size("64K") == 65536 and list(sizes(4, 64, 4)) == [4, 16, 64]
    with pytest.raises(ValueError, match="not '7Q'"):
        parse_size("7Q")
    with pytest.raises(ValueError, match="a factor -f of 2 or more"):
        next(sizes(4, 64, 1))


@pytest.mark.slow
def test_accelerate():
    """The example for Accelerate trains on two ranks.

    Cost: Each rank imports Accelerate and trains the example's model.
    """
    pytest.importorskip("accelerate", reason="needs Hugging Face's accelerate")
    pytest.importorskip("sklearn", reason="needs scikit-learn's digits")
    path = str(ROOT / "examples" / "torch" / "accelerate_digits.py")
    first, second = run_ranks(script, 2, path, ["120"], join=False, timeout=90)
    assert float(re.fullmatch(r"test accuracy (\d.\d+)\n", first)[1]) > 0.75, first
    assert second == ""
