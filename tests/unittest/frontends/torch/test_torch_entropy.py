"""PyTorch with the entropy stage: the weights of training without it, bit for bit."""

from __future__ import annotations

import hashlib

import pytest

from harness.torch_ranks import run_ranks, torch

STEPS = 30


def train(rank: int, type: str, topology: str) -> list[str]:
    """Return digests of the weights without the stage and with it."""
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    torch.set_num_threads(1)
    digests = []
    for entropy in (False, True):
        torch.manual_seed(1)
        network = torch.nn.Sequential(
            torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)
        )
        model = DistributedDataParallel(network)
        compression = hipress.torch.compress(
            model, type, topology=topology, min_size=256, entropy=entropy
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(rank)
        for _ in range(STEPS):
            x = torch.randn(8, 64, generator=generator)
            optimizer.zero_grad()
            cross_entropy(model(x), x[:, :8].argmax(dim=1)).backward()
            optimizer.step()
        sha = hashlib.sha1()
        for parameter in model.parameters():
            sha.update(parameter.detach().numpy())
        digests.append(sha.hexdigest())
        assert compression.stats().compressed > 0
    return digests


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type", "topology"), [("maxmin", "ps"), ("tbq", "ring")])
def test_weights_have_the_same_bits(type, topology):
    ranks = run_ranks(train, 3, type, topology, timeout=120)
    assert all(isinstance(found, list) for found in ranks), ranks
    assert len({digest for digests in ranks for digest in digests}) == 1
