"""A small GPT-2 on text with Hugging Face's Trainer: one line more than without compression.

    torchrun --nproc-per-node=2 examples/torch/trainer_text.py

Needs the packages transformers and accelerate (pip install transformers accelerate); downloads
nothing. Started again, it goes on from its last checkpoint, with what compression had left over.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from text import CONTEXT, Text
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from hipress.torch.huggingface import compress_trainer


class Pieces(torch.utils.data.Dataset):
    """Random pieces of the text, the same in every run."""

    def __init__(self, text: Text, count: int) -> None:
        self._data = text.batch(count, torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._data[index], "labels": self._data[index]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compression", default="maxmin", help="a codec's name; none if empty")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=128, help="a multiple of 32")
    parser.add_argument("--output", default="output/trainer_text", help="folder of checkpoints")
    args = parser.parse_args()

    text, width = Text(), args.width
    config = GPT2Config(
        vocab_size=len(text.characters),
        n_positions=CONTEXT + 1,
        n_embd=width,
        n_layer=2,
        n_head=width // 32,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            args.output,
            max_steps=args.steps,
            per_device_train_batch_size=8,
            learning_rate=2e-3,
            warmup_steps=20,
            logging_steps=20,
            save_steps=100,
            save_total_limit=2,
            use_cpu=True,
            max_grad_norm=0,  # clipping a mean of compressed gradients loses delayed parts
            ddp_find_unused_parameters=False,
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Pieces(text, 2048),
    )
    if args.compression:
        compress_trainer(trainer, args.compression)  # the one line
    trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
