"""Accelerate with compressed gradients: its handler, and its environment variable."""

from __future__ import annotations

import os

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed

pytest.importorskip("accelerate", reason="needs Hugging Face's accelerate")


def train(rank, integration):
    """Train with gradient accumulation and clipping, and return the weights and the type."""
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs, set_seed

    import hipress.torch

    if integration == "variable":
        os.environ["HIPRESS_ACCELERATE"] = "maxmin:bits=8"
    from hipress.torch.accelerate import HiPressHandler

    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = torch.nn.Linear(300, 100)
    handler = None
    if integration == "handler":
        ddp = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
        handler = accelerator.ddp_handler = HiPressHandler("maxmin:bits=8", ddp)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.utils.data.DataLoader(torch.randn(32, 300), batch_size=4)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    if handler is not None:
        assert model.gradient_as_bucket_view and handler.compression.settings.type == "maxmin"
    if integration == "compress":
        hipress.torch.compress(model, "maxmin", bits=8)
    for batch in batches:
        with accelerator.accumulate(model):
            loss = model(batch).square().mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return accelerator.unwrap_model(model).weight.detach().numpy().tobytes()


@pytest.mark.slow
def test_accelerate_trains_alike_in_all_ways():
    """The handler and the environment variable give the bits of compress().

    Cost: Four jobs, each of which imports Accelerate.
    """
    found = {
        integration: succeed(run_ranks(train, 2, integration, join=False))[0]
        for integration in ("compress", "handler", "variable", "none")
    }
    assert found["handler"] == found["variable"] == found["compress"] != found["none"]
