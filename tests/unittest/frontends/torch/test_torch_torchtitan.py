"""The example for torchtitan: its debug model trains on CPUs with compressed gradients."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import free_port

pytest.importorskip("torchtitan", reason="needs torchtitan, which make test-torch-latest installs")

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = ROOT / "tests" / "unittest" / "scripts" / "torchtitan_on_cpu.py"
OURS = ["--module", "hipress_llama3", "--config", "hipress_debugmodel"]
OWN = ["--module", "llama3", "--config", "llama3_debugmodel", "--training.disable_cuda_graphs"]
STEPS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with a tokenizer and texts where torchtitan's debug model expects them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    path = tmp_path_factory.mktemp("torchtitan")
    texts = [page.read_text() for page in sorted((ROOT / "docs" / "concepts").glob("*.md"))]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    assets = path / "tests" / "assets"
    for name in ("tokenizer", "c4_test"):
        (assets / name).mkdir(parents=True)
    tokenizer.save(str(assets / "tokenizer" / "tokenizer.json"))
    (assets / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(special))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (assets / "c4_test" / "data.json").write_text(lines)
    return path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run torchtitan in two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(free_port()), str(SCRIPT), *arguments]
    command += ["--training.steps", str(STEPS), "--training.local_batch_size", "1"]
    command += ["--training.seq_len", "64", "--debug.seed", "1"]
    paths = [ROOT / "python", ROOT / "examples" / "torchtitan"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=200)


def losses(folder: Path, *arguments: str) -> list[float]:
    """Return the loss of each step. Both processes must report the same."""
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    found: dict[int, list[float]] = {}
    for step, loss in re.findall(r"step: +(\d+) +loss: +([0-9.]+)", text):
        found.setdefault(int(step), []).append(float(loss))
    assert sorted(found) == list(range(1, STEPS + 1))
    assert all(len(each) == 2 and each[0] == each[1] for each in found.values()), found
    return [each[0] for _, each in sorted(found.items())]


@pytest.mark.slow
def test_debug_model_has_the_losses_of_uncompressed_torchtitan(folder):
    expected = losses(folder, *OWN)
    exact = losses(folder, *OURS, "--compression.type", "none", "--compression.bits", "None")
    assert exact == pytest.approx(expected, rel=2e-4)
    compressed = losses(folder, *OURS, "--compression.bits", "8", "--compression.gather", "blocks")
    assert compressed == pytest.approx(expected, rel=0.01)
    assert compressed[-1] < compressed[0]


@pytest.mark.slow
def test_cuda_graphs_are_refused(folder):
    done = run(folder, *OURS, "--training.no-disable_cuda_graphs")
    assert done.returncode != 0
    assert "pass --training.disable_cuda_graphs" in done.stderr
