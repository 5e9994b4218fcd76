"""Residuals in the checkpoints that Hugging Face's Trainer saves and resumes from."""

from __future__ import annotations

import shutil

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed
from test_torch_trainer import Regression, trainer_of


class Matrix(Regression):
    """Model whose weight is a matrix, which powersgd compresses, too."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(50, 60))

    def forward(self, x, y):
        return {"loss": ((x @ self.weight.view(-1) - y) ** 2).mean()}


def made(folder, type="onebit", **settings):
    """Create a trainer, its callback, and what returns the weight's bits and the compression's
    step."""
    from hipress.torch.huggingface import compress_trainer

    model = Matrix()
    trainer = trainer_of(model, str(folder), steps=4)
    callback = compress_trainer(trainer, type, min_size=16, **settings)
    return (
        trainer,
        callback,
        lambda: (model.weight.detach().numpy().tobytes(), callback.compression.step),
    )


def train(rank, folder, checkpoint, *given):
    type, settings = given or ("onebit", {})
    trainer, _, result = made(folder, type, **settings)
    trainer.train(resume_from_checkpoint=checkpoint)
    return result()


@pytest.mark.slow
def test_a_checkpoint_of_another_folder_has_its_own_residuals(tmp_path):
    """Residuals come from the checkpoint that is loaded, also in another folder.

    Cost: Trainings follow each other, and each rank imports Transformers.
    """
    straight = succeed(run_ranks(train, 2, tmp_path / "old", None, join=False))
    assert straight[0][0] != bytes(12000) and straight[0][1] == 4
    old = str(tmp_path / "old" / "checkpoint-2")
    assert succeed(run_ranks(train, 2, tmp_path / "new", old, join=False)) == straight
    # A run that was here before has left another state at this step, of which nothing is taken.
    other = tmp_path / "other" / "checkpoint-2"
    shutil.copytree(tmp_path / "old" / "checkpoint-4", other)
    assert succeed(run_ranks(train, 2, tmp_path / "other", old, join=False)) == straight


def again(rank, folder, cases):
    """Train, then resume in the same process, also from a checkpoint without residuals. Return also
    the state of a separate process that resumes from that one."""
    found = []
    for number, (type, settings) in enumerate(cases):
        here = folder / str(number)
        trainer, callback, result = made(here, type, **settings)
        trainer.train()
        straight, model = result(), trainer.model_wrapped
        trainer.train(resume_from_checkpoint=str(here / "checkpoint-2"))
        assert trainer.model_wrapped is model  # otherwise this test shows nothing
        resumed = result()
        lost = here / "lost" / "checkpoint-2"
        if rank == 0:
            shutil.copytree(here / "checkpoint-2", lost)
            shutil.rmtree(lost / "hipress")
        torch.distributed.barrier()
        trainer.train(resume_from_checkpoint=str(lost))
        without = result()
        torch.distributed.barrier()
        fresh = train(rank, here / "fresh", str(lost), type, settings)
        found.append((straight, resumed, without, fresh))
    return found


@pytest.mark.slow
def test_a_trainer_that_has_trained_resumes_with_the_checkpoints_residuals(tmp_path):
    """A Trainer that has trained replaces its residuals by those of the checkpoint.

    Cost: Trainings follow each other, and each rank imports Transformers.
    """
    cases = [
        ("onebit", {}),
        ("onebit", {"warmup_steps": 3}),  # the checkpoint is of the warm-up
        ("onebit", {"warmup_steps": 1, "shared_momentum": 0.5}),
        ("dgc", {"ratio": 0.1, "warmup": 0}),
        ("powersgd", {"rank": 1}),
    ]
    found = succeed(run_ranks(again, 2, tmp_path, cases, join=False, timeout=120))
    assert found[0] == found[1]
    for case, (straight, resumed, without, fresh) in zip(cases, found[0], strict=True):
        assert straight[0] != bytes(12000) and straight[1] == 4, case
        assert resumed == straight, case
        # Nor are residuals of other weights used where the checkpoint has none.
        assert without == fresh != straight and without[1] == 2, case


def goes_on(rank, folder):
    """Train twice without resuming; return the compression's steps after each."""
    trainer, callback, result = made(folder)
    trainer.train()
    first = callback.compression
    steps = [first.step]
    trainer.train()
    assert callback.compression is first
    return [*steps, first.step]


def test_a_second_training_that_does_not_resume_goes_on(tmp_path):
    assert succeed(run_ranks(goes_on, 2, tmp_path, join=False)) == [[4, 8]] * 2


class Trial(dict):
    """Trial like optuna's, which is not installed here. For other libraries the Trainer accepts
    dictionaries."""

    number, params = 7, {}


def search(rank, folder):
    """Run one trial of a search for hyperparameters, as hyperparameter_search() does."""
    from transformers.integrations import integration_utils
    from transformers.trainer_utils import HPSearchBackend

    integration_utils.is_wandb_available = lambda: True  # whose trials are dictionaries
    trainer, _, result = made(folder)
    trainer.hp_search_backend, trainer.hp_space = HPSearchBackend.OPTUNA, lambda trial: {}
    trainer.train(trial=Trial())
    return result()


@pytest.mark.slow
def test_a_trial_has_residuals_in_its_own_folder(tmp_path):
    """A trial of a hyperparameter search has its own residuals.

    Cost: Trainings follow each other, and each rank imports Transformers.
    """
    straight = succeed(run_ranks(search, 2, tmp_path, join=False))
    saved = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("hipress")}
    assert saved == {"run-7/checkpoint-2/hipress", "run-7/checkpoint-4/hipress"}
    checkpoint = str(tmp_path / "run-7" / "checkpoint-2")
    assert succeed(run_ranks(train, 2, tmp_path / "new", checkpoint, join=False)) == straight
