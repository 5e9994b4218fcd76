"""The digits example as a Hugging Face Accelerate script: one line more than without compression.

    accelerate launch --cpu --num_processes 2 examples/torch/accelerate_digits.py
    torchrun --nproc-per-node=2 examples/torch/accelerate_digits.py

Needs the package accelerate (pip install accelerate).
"""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator
from digits import load
from models import small_cnn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import hipress.torch


def main(steps: int = 150) -> None:
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    train, test = load()
    loader = DataLoader(TensorDataset(*train), batch_size=16, shuffle=True, drop_last=True)
    model = small_cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    if accelerator.num_processes > 1:  # alone, there is no DDP and nothing to compress
        hipress.torch.compress(model, "onebit", min_size=1024)
    step = 0
    while step < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            accelerator.backward(F.cross_entropy(model(images), labels))
            optimizer.step()
            step += 1
            if step == steps:
                break
    right = (accelerator.unwrap_model(model)(test[0]).argmax(1) == test[1]).float().mean().item()
    accelerator.print(f"test accuracy {right:.3f}")
    accelerator.end_training()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
