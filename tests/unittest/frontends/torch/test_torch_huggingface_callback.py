"""HiPressCallback in Hugging Face's Trainer: resuming, PEFT, FSDP2 and logged metrics."""

from __future__ import annotations

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import succeed
from test_torch_trainer import Regression, trainer_of

pytest.importorskip("transformers", reason="needs Hugging Face's transformers")
pytest.importorskip("accelerate", reason="needs Hugging Face's accelerate")


def train(rank, folder, resume):
    """Return the weight's bits, and the step of the compression."""
    from hipress.torch.huggingface import HiPressCallback

    model = Regression()
    trainer = trainer_of(model, folder, steps=4)
    callback = HiPressCallback("onebit", min_size=16)
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=resume)
    return model.weight.detach().numpy().tobytes(), callback.compression.step


@pytest.mark.slow
def test_callback_resumes_with_the_same_bits(tmp_path):
    """A training with the callback resumes from its checkpoint with the same bits.

    Cost: Two trainings; each rank imports Transformers.
    """
    folder = tmp_path / "a"
    straight = succeed(run_ranks(train, 2, str(folder), None, join=False))
    assert straight[0][1] == 4
    kept = folder / "checkpoint-2"
    assert (kept / "hipress" / ".metadata").exists()
    resumed = succeed(run_ranks(train, 2, str(folder), str(kept), join=False))
    assert resumed == straight


def metrics(rank, folder):
    """Log with Transformers' own callback for TensorBoard, and return the logged history."""
    from transformers.integrations import TensorBoardCallback

    from hipress.torch.huggingface import compress_trainer

    trainer = trainer_of(Regression(), folder, steps=2)
    trainer.args.logging_steps = 1
    trainer.add_callback(TensorBoardCallback())
    compress_trainer(trainer, "onebit", min_size=16)
    trainer.train()
    return trainer.state.log_history


@pytest.mark.slow
def test_trainer_logs_metrics(tmp_path):
    """TensorBoard and the Trainer's history get the compression's metrics.

    Cost: A training, whose ranks import Transformers.
    """
    pytest.importorskip("tensorboardX", reason="needs tensorboardX")
    for history in returned(run_ranks(metrics, 2, str(tmp_path), join=False)):
        assert history[0]["hipress/ratio"] > 5
    events = b"".join(path.read_bytes() for path in tmp_path.rglob("events.out.tfevents.*"))
    assert b"train/hipress/ratio" in events


def peft_run(rank, folder):
    """Train adapters only, and return their bits and the compressed bytes."""
    import peft

    from hipress.torch.huggingface import HiPressCallback

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3000, 16)

        def forward(self, x, y):
            return {"loss": ((self.layer(x).mean(-1) - y) ** 2).mean()}

    model = peft.get_peft_model(Network(), peft.LoraConfig(r=4, target_modules=["layer"]))
    trainer = trainer_of(model, folder, steps=2)
    trainer.args.save_strategy = "no"
    callback = HiPressCallback("onebit", min_size=16)
    trainer.add_callback(callback)
    trainer.train()
    bits = [p.detach().numpy().tobytes() for p in model.parameters() if p.requires_grad]
    return bits, callback.compression.stats().compressed


@pytest.mark.slow
def test_callback_compresses_adapters_of_peft(tmp_path):
    """The trained adapters of a PEFT model are compressed, and nothing else.

    Cost: A training, whose ranks import Transformers and PEFT.
    """
    pytest.importorskip("peft", reason="needs Hugging Face's peft")
    _, compressed = succeed(run_ranks(peft_run, 2, str(tmp_path), join=False))[0]
    assert compressed == 2 * 4 * 4 * (3000 + 16)


def sharded(rank):
    """Give the callback a model of FSDP2, as the Trainer does, and return its step and type."""
    from torch.distributed.fsdp import fully_shard
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from hipress.torch.huggingface import HiPressCallback

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
    fully_shard(model)
    callback = HiPressCallback("onebit", min_size=16)
    args = TrainingArguments("unused", use_cpu=True, report_to="none")
    callback.on_train_begin(args, TrainerState(), TrainerControl(), model=model)
    model(torch.ones(4, 64)).sum().backward()
    return type(callback.compression).__name__, callback.compression.step


def test_callback_compresses_model_of_fsdp2():
    assert run_ranks(sharded, 2) == [("ShardedCompression", 1)] * 2
