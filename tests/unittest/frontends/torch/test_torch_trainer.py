"""Hugging Face's Trainer with compressed gradients, and its checkpoints."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from harness.torch_ranks import run_ranks, torch
from hipress.torch.state.checkpoint import load_checkpoint
from test_torch_ddp import succeed
from test_torch_examples import ROOT, script

pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
pytest.importorskip("accelerate", reason="needs Hugging Face's accelerate")


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3000))

    def forward(self, x, y):
        return {"loss": ((x @ self.weight - y) ** 2).mean()}


def trainer_of(model, folder, steps):
    from transformers import Trainer, TrainingArguments

    generator = torch.Generator().manual_seed(3)
    data = [{"x": torch.randn(3000, generator=generator), "y": 1.0} for _ in range(32)]
    args = TrainingArguments(
        folder,
        max_steps=steps,
        save_steps=2,
        per_device_train_batch_size=2,
        learning_rate=1e-4,
        optim="sgd",
        max_grad_norm=0,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    return Trainer(model=model, args=args, train_dataset=data)


def train(rank, folder, resume, steps=4):
    """Return the weight's bits and the training's step as the compression counts it."""
    from hipress.torch.huggingface import compress_trainer

    model = Regression()
    trainer = trainer_of(model, folder, steps)
    callback = compress_trainer(trainer, "onebit", min_size=16)
    trainer.train(resume_from_checkpoint=resume)
    return model.weight.detach().numpy().tobytes(), callback.compression.step


@pytest.mark.slow
def test_a_resumed_training_has_the_same_bits(tmp_path):
    """Transformers' Trainer continues from a checkpoint with the bits of an uninterrupted
    training.

    Cost: Three trainings of two ranks follow each other; each rank imports Transformers.
    """
    straight = succeed(run_ranks(train, 2, str(tmp_path / "a"), None, join=False))
    assert straight[0] == straight[1]
    assert straight[0][0] != bytes(12000) and straight[0][1] == 4
    kept = tmp_path / "b" / "checkpoint-2"
    shutil.copytree(tmp_path / "a" / "checkpoint-2", kept)
    resumed = succeed(run_ranks(train, 2, str(tmp_path / "b"), str(kept), join=False))
    assert resumed == straight
    # Without the residuals it is another training: so the comparison above means something.
    lost = tmp_path / "c" / "checkpoint-2"
    shutil.copytree(tmp_path / "a" / "checkpoint-2", lost)
    shutil.rmtree(lost / "hipress")
    without = succeed(run_ranks(train, 2, str(tmp_path / "c"), str(lost), join=False))
    assert without[0] == without[1] and without[0] != straight[0]
    # A process that dies while it saves leaves residuals without .metadata, which comes last.
    (kept / "hipress" / ".metadata").unlink()
    with pytest.raises(ValueError, match="is not complete: its .metadata"):
        load_checkpoint(None, kept / "hipress")
    torn = succeed(run_ranks(train, 2, str(tmp_path / "b"), str(kept), join=False))
    assert torn == without
    # Training has saved that step's successor whole, and left no partial one.
    assert sorted(p.name for p in tmp_path.glob("b/checkpoint-4/hipress*")) == ["hipress"]
    assert (tmp_path / "b" / "checkpoint-4" / "hipress" / ".metadata").exists()


class Partly(Regression):
    """Model that has a parameter without elements, too."""

    def __init__(self):
        super().__init__()
        self.nothing = torch.nn.Parameter(torch.zeros(0, 4))

    def forward(self, x, y):
        return {"loss": super().forward(x, y)["loss"] + self.nothing.sum()}


def modes(rank, folder):
    """Return weights after a training without and with compression, its messages, and those about
    an optimizer in the backward pass."""
    from torch.distributed.optim import _apply_optimizer_in_backward

    from hipress.torch.huggingface import compress_trainer

    plain, compressed, early = Partly(), Partly(), Partly()
    trainer_of(plain, f"{folder}/plain", steps=2).train()
    trainer = trainer_of(compressed, f"{folder}/compressed", steps=2)
    callback = compress_trainer(trainer, "bf16", min_size=0)
    trainer.train()
    logged = trainer.model_wrapped._get_ddp_logging_data()["comm_hook"]
    _apply_optimizer_in_backward(torch.optim.SGD, [early.weight], {"lr": 0.1})
    trainer = trainer_of(early, f"{folder}/early", steps=2)
    compress_trainer(trainer, "bf16", min_size=0)
    with pytest.raises(ValueError) as error:
        trainer.train()
    weights = [model.weight.tolist() for model in (plain, compressed)]
    said = str(error.value).removeprefix("rank 0: ")
    return weights, callback.compression.stats().compressed, logged, said


@pytest.mark.slow
def test_what_models_have_and_modes_of_ddps_own(tmp_path):
    found = succeed(run_ranks(modes, 2, str(tmp_path), join=False))
    (plain, compressed), size, logged, early = found[0]
    assert any(plain) and compressed == pytest.approx(plain, rel=0.02, abs=1e-4)
    assert (size, logged) == (2 * 12000, "hipress_hook")
    assert "'weight' has an optimizer in the backward pass" in early


def test_the_example(tmp_path):
    path = str(ROOT / "examples" / "torch" / "trainer_text.py")
    arguments = ["--steps", "20", "--width", "32", "--output", str(tmp_path)]
    first, second = run_ranks(script, 2, path, arguments, join=False, timeout=120)
    losses = re.findall(r"'loss': '([\d.]+)'", first)
    assert float(losses[0]) < 4.6, first  # the logarithm of the number of characters
    assert second == ""
    assert (Path(tmp_path) / "checkpoint-20" / "hipress").is_dir()
    state = json.loads((Path(tmp_path) / "checkpoint-20" / "trainer_state.json").read_text())
    assert state["global_step"] == 20
