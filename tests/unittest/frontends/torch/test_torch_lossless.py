"""Training with the codec lossless gives the weights of uncompressed training, bit for bit."""

from __future__ import annotations

import hashlib

import pytest

from harness.torch_ranks import run_ranks, torch

STEPS = 1000


def weights(model: torch.nn.Module) -> str:
    sha = hashlib.sha1()
    for parameter in model.parameters():
        sha.update(parameter.detach().view(torch.uint8).numpy())
    return sha.hexdigest()


def train(rank: int, dtype: torch.dtype) -> tuple[list[str], int]:
    """Train two models that start alike, one uncompressed. Return digests of their weights before
    and after, and bytes of gradients that were compressed."""
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    torch.set_num_threads(1)
    models, optimizers = [], []
    for type_ in ("none", "lossless"):
        torch.manual_seed(1)
        network = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
        )
        model = DistributedDataParallel(network.to(dtype))
        compression = hipress.torch.compress(model, type_, min_size=256)
        models.append(model)
        optimizers.append(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
    generator = torch.Generator().manual_seed(rank)
    begin = weights(models[0])
    for _ in range(STEPS):
        x = torch.randn(8, 32, generator=generator).to(dtype)
        y = x[:, :8].argmax(dim=1)
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            cross_entropy(model(x).float(), y).backward()
            optimizer.step()
    return [begin, *map(weights, models)], compression.stats().compressed


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_thousand_steps_end_with_the_same_bits(dtype):
    ranks = run_ranks(train, 3, dtype, timeout=120)
    assert all(isinstance(found, tuple) for found in ranks), ranks
    for (begin, uncompressed, compressed), size in ranks:
        assert compressed == uncompressed != begin
        assert size == STEPS * (64 * 32 + 8 * 64) * dtype.itemsize
    assert len({tuple(digests) for digests, _ in ranks}) == 1
