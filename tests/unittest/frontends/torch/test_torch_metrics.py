"""metrics(): numbers of a compression for loggers."""

from __future__ import annotations

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import MIN_SIZE, loss_of, network, wrap


def metrics(rank, type, steps):
    model, compression = wrap(network(), type)
    before = compression.metrics()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss_of(model, rank, step).backward()
        optimizer.step()
        optimizer.zero_grad()
    return before, compression.metrics(prefix="x/")


def test_metrics_are_plain_floats_of_known_size():
    sizes = [p.numel() for p in network().parameters()]
    large = sum(size for size in sizes if size >= MIN_SIZE)
    for before, after in returned(run_ranks(metrics, 2, "onebit", 3)):
        assert before["bytes"] == before["residual_norm"] == before["waited_ms"] == 0
        assert all(type(value) is float for value in after.values()), after
        assert after["x/bytes"] == 3 * 4 * sum(sizes)
        assert after["x/compressed_bytes"] == 3 * 4 * large
        assert 0 < after["x/sent_bytes"] < after["x/bytes"]
        assert after["x/ratio"] > 2 and after["x/residual_norm"] > 0 and after["x/waited_ms"] > 0
        assert after["x/method/onebit"] == 1


def test_metrics_name_the_method_of_type_auto():
    for _, after in returned(run_ranks(metrics, 2, "auto", 2)):
        assert sum(name.startswith("x/method/") for name in after) == 1
