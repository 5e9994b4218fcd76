"""Type "auto" of DistributedOptimizer; test_torch_choice.py has it on a slow link."""

from __future__ import annotations

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_choice import FAST, SLOW
from test_torch_ddp import loss_of, network

CHANGE, COUNT = 40, 70


def trained(rank, before, after, kind, op, folder=""):
    """Train while gradients take the given milliseconds with each method (other methods 5 times the
    most), and others from a step on."""
    import os

    import hipress.torch
    from hipress.autotune import journal
    from known_times import measure

    if folder:
        journal.EVERY = 20
        os.environ["HIPRESS_EXPLAIN"] = os.path.join(folder, "job.json")
    now = dict(before)
    lines = measure(
        lambda method_name: now.get(method_name, 5 * max(now.values())) * (1 if rank else 0.8)
    )
    model = network()
    optimizer = hipress.torch.DistributedOptimizer(
        getattr(torch.optim, kind)(model.parameters(), lr=1e-3),
        model.named_parameters(),
        "auto",
        min_size=1000,
        op=op,
        backward_passes_per_step=2,
    )
    method_names = []
    for step in range(COUNT):
        if step == CHANGE:
            now.clear()
            now.update(after)
        optimizer.zero_grad()
        for half in range(2):
            (loss_of(model, rank, 2 * step + half) / 2).backward()
        optimizer.step()
        method_names.append(optimizer.compression._controller.method.name)
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    compression = optimizer.compression
    return method_names, lines, bits, str(compression.explain()), compression.is_settled


def averages(rank, op):
    """Return the last gradients of the same training by PyTorch alone, with weights that hardly
    change."""
    import torch.distributed as dist

    model = network()
    for half in range(2):
        (loss_of(model, rank, 2 * (COUNT - 1) + half) / 2).backward()
    found = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(found)
    return found / (1 if op == "sum" else dist.get_world_size())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("before", "after", "kind", "op", "first", "second"),
    [
        (FAST, {**SLOW, "uncompressed": 50.0}, "Adam", "average", "uncompressed", "maxmin bits=8"),
        (
            {**SLOW, "uncompressed": 50.0, "powersgd rank=4": 1.0},
            {
                **FAST,
                "uncompressed": 30.0,
                "powersgd rank=4": 50.0,
                "bf16": 60.0,
                "maxmin bits=8": 61.0,
                "DDP's bf16_compress_hook": 62.0,
            },
            "SGD",
            "sum",
            "powersgd rank=4",
            "uncompressed",
        ),
    ],
)
def test_it_chooses_and_follows_the_network(before, after, kind, op, first, second, tmp_path):
    found = returned(run_ranks(trained, 2, before, after, kind, op, str(tmp_path)))
    method_names, lines, bits, said, settled = found[0]
    assert method_names == found[1][0] and bits == found[1][2] and said == found[1][3]
    assert not found[1][1] and settled  # rank 0 speaks for all
    assert set(method_names[:CHANGE]) == {first} and set(method_names[CHANGE + 20 :]) == {second}
    assert set(method_names) <= {
        first,
        second,
        "maxmin bits=8",
    }  # which sends what powersgd has left
    assert lines[0].startswith(f"auto: {first}, the fastest:"), lines
    (change,) = [line for line in lines if "times as long as they did" in line]
    assert f"{second}, " in change and f"> {second}" in said
    assert (tmp_path / "job.json").exists() and len((tmp_path / "job.jsonl").read_text()) > 100


def test_uncompressed_is_what_pytorch_computes():
    for op in ("average", "sum"):
        found = returned(run_ranks(still, 2, op))
        assert torch.equal(found[0], found[1])


def still(rank, op):
    """Return the difference between PyTorch's own sums and those of the method "uncompressed"."""
    import hipress.torch
    from known_times import measure

    measure(lambda method_name: FAST.get(method_name, 9.0))
    model = network()
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.0),
        model.named_parameters(),
        "auto",
        min_size=1000,
        op=op,
        backward_passes_per_step=2,
    )
    for half in range(2):
        (loss_of(model, rank, 2 * (COUNT - 1) + half) / 2).backward()
    optimizer.step()
    assert optimizer.compression.framework_method.name == "uncompressed"
    mine = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(mine, averages(rank, op), rtol=1e-6, atol=1e-7)
    return mine
