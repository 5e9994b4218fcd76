"""plan="auto": what to compress, measured by the ranks themselves."""

from __future__ import annotations

import math

import pytest

from test_torch_ddp import batch, network, wrap
from torch_cluster import run_ranks, torch


def chosen(rank, seconds, type="onebit", params=None, min_size=100):
    """What ranks choose that measure ``seconds(compressed, size, rank)``, and what they log."""
    import logging

    from hipress.torch import auto

    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)
    if seconds is not None:
        auto._seconds = lambda way, size, *_: seconds(way.min_size == 0, size, rank)
    ddp, compression = wrap(network(), type, plan="auto", min_size=min_size, **(params or {}))
    x, y = batch(rank, 0)
    torch.nn.functional.cross_entropy(ddp(x), y).backward()
    found = b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())
    return compression.settings.min_size, lines, found, list(compression.places.made)


def both(*args):
    """What both ranks give, who end with the same size and the same gradients."""
    found = run_ranks(chosen, 2, *args)
    assert not any(isinstance(one, str) for one in found), found
    assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
    return found


def pays_from_20000(compressed, size, rank):
    """Rank 1 is twice as slow with everything, which changes nothing."""
    return (1 + rank) * (1e-4 + 1e-9 * size if compressed else 1e-6 * size / 200)


def never_pays(compressed, size, rank):
    return 1e-9 * size * (2 if compressed else 1)


def rank_1_disagrees(compressed, size, rank):
    """Alone, rank 0 would compress everything and rank 1 nothing; rank 1's loss is the larger."""
    return 1e-9 * size * ([0.9, 8.0][rank] if compressed else 1.0)


def test_ranks_take_the_same_answer_and_train():
    found = both(pays_from_20000)
    least = found[0][0]
    assert 20_000 <= least <= 30_000
    assert {name for name, _ in found[0][3]} == {"2.weight"}  # 40,000 elements; the next has 12,800
    assert any(f"onebit pays from {least} elements on" in line for line in found[0][1])
    assert not found[1][1]  # rank 0 speaks for all


@pytest.mark.parametrize("seconds", [never_pays, rank_1_disagrees])
def test_what_gains_nothing_is_not_compressed(seconds):
    for rank, (least, lines, _, places) in enumerate(both(seconds)):
        assert least > 1e9 and not places
        assert any("nothing is compressed" in line for line in lines) == (rank == 0)


def test_min_size_stays_the_least():
    assert both(pays_from_20000, "onebit", {}, 50_000)[0][0] == 50_000


def test_it_measures():
    first, _ = both(None, "dgc", {"ratio": 0.01, "warmup_steps": 9})
    table = next(line for line in first[1] if "ms by elements" in line)
    numbers = [float(word) for word in table.replace(",", " ").split() if word[0].isdigit()
               and not word.endswith(":")]  # fmt: skip
    assert len(numbers) == 10 and all(0 < ms < 1e5 and math.isfinite(ms) for ms in numbers)
