"""Type "auto" and what a model supports: its optimizer, its gradients; and that nothing is lost."""

from __future__ import annotations

import math

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_choice import SLOW, both
from test_torch_ddp import loss_of, network

POWERSGD = {**SLOW, "powersgd rank=4": 0.6}


def test_sgd_gets_error_feedback_when_its_first_step_is_seen():
    found = both(POWERSGD)
    assert (found["type"], found["params"]) == ("powersgd", {"rank": 4})
    first, second = found["lines"]
    assert first.startswith("auto: maxmin bits=8, the fastest:")
    assert "powersgd rank=4 0.6 ms (with SGD only)" in first
    assert second.startswith("auto: from step 1 on, as the optimizer is SGD, powersgd rank=4, the")
    assert not any(row.note for row in found["explained"].rows)
    assert "> powersgd rank=4" in found["text"]
    assert set(found["stats"].parameters) == {"0.bias", "2.bias", "4.bias"}


def test_sgd_that_is_given_gets_error_feedback_at_once():
    found = both(POWERSGD, given=True)
    (line,) = found["lines"]
    assert found["type"] == "powersgd" and line.startswith("auto: powersgd rank=4, the fastest:")


@pytest.mark.slow
def test_adam_gets_none():
    found = both(POWERSGD, optimizer="Adam")
    assert found["type"] == "maxmin" and len(found["lines"]) == 1
    assert any(row.method == "maxminef bits=2" for row in found["explained"].rows)
    found = both(POWERSGD, optimizer="AdamW", given=True)
    assert found["type"] == "maxmin"
    rows = found["explained"].rows
    assert not any("maxminef" in row.method for row in rows)  # nor is it measured


def test_what_optimizers_bear():
    from hipress.torch.autotune.optimizers import TunedOptimizers, allows_feedback

    class Own(torch.optim.SGD):
        """Optimizer of an unknown class."""

    one, other = (torch.nn.Parameter(torch.ones(3, 3)) for _ in range(2))
    sgd = torch.optim.SGD([one], lr=0.1, momentum=0.9, nesterov=True)
    assert allows_feedback(sgd) and allows_feedback(torch.optim.SGD([one], lr=0.1))
    assert not allows_feedback(torch.optim.SGD([one], lr=0.1, momentum=0.99))
    assert not allows_feedback(torch.optim.Adam([one])) and not allows_feedback(Own([one]))
    assert TunedOptimizers([one], sgd).allow_feedback is True
    both = TunedOptimizers([one, other], sgd)
    assert both.allow_feedback is None  # that of the other is not known
    torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1).step()
    assert both.allow_feedback is None
    torch.optim.SGD([other], lr=0.1).step()
    assert both.allow_feedback is True
    torch.optim.Adam([other]).step()
    assert both.allow_feedback is False
    with pytest.raises(TypeError, match="takes a torch.optim.Optimizer, not list"):
        TunedOptimizers([one], [sgd])


def wrong_optimizers(rank):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    ddp = DistributedDataParallel(network())
    sgd, adam = torch.optim.SGD(ddp.parameters(), lr=0.1), torch.optim.Adam(ddp.parameters())
    said = []
    own = sgd if rank else adam
    for args, optimizer in ((["onebit"], sgd), ([], "SGD" if rank else sgd), ([], own)):
        with pytest.raises(ValueError) as error:
            hipress.torch.compress(ddp, *args, optimizer=optimizer)
        said.append(str(error.value))
    return said


def test_wrong_optimizers():
    for said in returned(run_ranks(wrong_optimizers, 2)):
        assert "optimizer= is for type 'auto': leave it out with 'onebit'" in said[0]
        assert "optimizer= takes a torch.optim.Optimizer, not str" in said[1]
        assert "differ in optimizer: 'Adam, without feedback' and 'SGD, with feedback'" in said[2]


def with_vectors(rank):
    """Return whether large vectors, and matrices, are compressed."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.autotune import frontend

    frontend.Sample.seconds = lambda step: 1.0 if step.method.name == "maxmin bits=5" else 9.0
    model = torch.nn.Sequential(torch.nn.Linear(4, 5000), torch.nn.LayerNorm(5000))
    ddp = DistributedDataParallel(model)
    compression = hipress.torch.compress(ddp, min_size=1000)
    ddp(torch.ones(2, 4)).square().sum().backward()
    return compression.stats()


def test_vectors_go_as_they_are():
    for stats in returned(run_ranks(with_vectors, 2)):
        assert stats.compressed == 4 * 4 * 5000
        assert {n: each.reasons for n, each in stats.parameters.items()} == {
            name: ["as planned"] for name in ("0.bias", "1.weight", "1.bias")
        }


def left(rank, method_name, less_lossy, steps=40):
    """Train without learning with a method whose residuals are found too large. Return the sums of
    what was sent and of what should have been, the messages, and the remaining residuals."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import controller as controllers
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend

    ms = {method_name: 1.0, less_lossy: 2.0}
    frontend.Sample.seconds = lambda step: ms.get(step.method.name, 9.0)
    trials.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    controllers.MAX_SHARE = 0.5
    ours, plain = DistributedDataParallel(network()), DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.0)
    compression = hipress.torch.compress(ours, min_size=1000, optimizer=optimizer)
    types, sums = [], [[torch.zeros_like(p) for p in network().parameters()] for _ in range(2)]
    for step in range(steps):
        for ddp, total in zip((ours, plain), sums):
            ddp.zero_grad()
            loss_of(ddp, rank, step).backward()
            for parameter, each in zip(ddp.parameters(), total):
                each += parameter.grad
        optimizer.step()
        types.append(compression.settings.type)
    flat = [torch.cat([each.flatten() for each in total]) for total in sums]
    error = ((flat[0] - flat[1]).norm() / flat[1].norm()).item()
    residual = compression._controller._frontend.residual_norm()
    return types, error, str(compression.explain()), residual


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("method_name", "less_lossy"),
    [
        ("maxminef bits=2", "uncompressed"),
        ("powersgd rank=4", "maxmin bits=8"),
        ("powersgd rank=4", "maxminef bits=4"),
    ],
)
def test_residuals_that_grow_too_large_are_sent_and_a_gentler_way_goes_on(method_name, less_lossy):
    first, second = returned(run_ranks(left, 2, method_name, less_lossy))
    assert first[0] == second[0] and first[2] == second[2]
    types, error, said, rest = first
    kinds = list(dict.fromkeys(types))
    flushed = ["maxmin"] if less_lossy != "maxmin bits=8" else []
    name = "none" if less_lossy == "uncompressed" else less_lossy.split()[0]
    assert kinds == [method_name.split()[0], *flushed, name]
    assert types.count("maxmin") == 1 or not flushed  # one step sends what is left
    assert (
        f"auto: {less_lossy} from step 24 on, for {method_name} delays too much: its residuals"
        in said
    )
    assert "too coarse" in said and f"> {less_lossy}" in said
    assert error < (0.06 if rest else 0.02) and (rest == 0) == ("ef" not in less_lossy)


def taken_over(rank, method_name, next_method, folder):
    """Return the error of what two jobs have sent. The second one begins with the first one's state
    (one rank's own, or all ranks' in a folder), and with another method."""
    import torch.distributed.checkpoint as dcp
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.autotune import frontend

    saved, sums = None, [[torch.zeros_like(p) for p in network().parameters()] for _ in range(2)]
    for name in (method_name, next_method):
        frontend.Sample.seconds = lambda step, name=name: 1.0 if step.method.name == name else 9.0
        ours, plain = DistributedDataParallel(network()), DistributedDataParallel(network())
        optimizer = torch.optim.SGD(ours.parameters(), lr=0.0)
        compression = hipress.torch.compress(ours, min_size=1000, optimizer=optimizer)
        if saved is not None and folder:
            hipress.torch.load_checkpoint(compression, folder)
        elif saved is not None:
            compression.load_state_dict(saved)
        for step in range(3):
            for ddp, total in zip((ours, plain), sums):
                ddp.zero_grad()
                loss_of(ddp, rank, step).backward()
                for parameter, each in zip(ddp.parameters(), total):
                    each += parameter.grad
        saved = compression.state_dict()
        if folder:
            dcp.save({"hipress": compression}, checkpoint_id=folder)
    flat = [torch.cat([each.flatten() for each in total]) for total in sums]
    return ((flat[0] - flat[1]).norm() / flat[1].norm()).item(), compression.settings.type


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("next_method", ["uncompressed", "maxmin bits=8", "maxminef bits=2"])
def test_a_restarted_job_takes_over_the_residuals_of_another_way(next_method, checkpoint, tmp_path):
    folder = str(tmp_path / "checkpoint") if checkpoint else ""
    for error, type in returned(run_ranks(taken_over, 2, "powersgd rank=4", next_method, folder)):
        assert type == ("none" if next_method == "uncompressed" else next_method.split()[0])
        assert error < (0.6 if type == "maxminef" else 0.02)  # which has separate residuals


def test_the_rounding_error_is_what_a_codec_makes():
    import numpy as np

    from hipress import Compressor
    from hipress.autotune.quality_guard import RoundingGuard, rounding_error, squares
    from hipress.torch.autotune.frontend import TensorStatistics
    from hipress.torch.gradient import Gradient

    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(50_000, generator=generator)
    flat[20_000:].pow_(5)  # few large ones among small ones
    for gradient in (Gradient("even", 0, 20_000), Gradient("uneven", 20_000, 30_000)):
        guard = RoundingGuard()
        guard.add(TensorStatistics.squares([flat[piece] for piece in gradient.slices()]))
        spread = guard.spread()
        part = flat[gradient.offset :][: gradient.count].numpy()
        guard.add(squares(part))
        assert guard.spread() == pytest.approx(spread)
        for bits in (4, 5, 8):
            codec = Compressor("maxmin", bits=bits)
            error = codec.decode(codec.encode(part.copy()), part.size) - part
            real = np.linalg.norm(error) / np.linalg.norm(part)
            assert rounding_error({"bits": bits}, spread) == pytest.approx(real, rel=0.2)
    assert guard.spread() is None
    for value in (0.0, math.nan, math.inf):
        guard.add(squares(np.full(2000, value)))
        assert guard.spread() == 0
    assert [step for step in range(7, 250) if guard.observes(step)] == [7, 107, 207]


def coarse(rank, fastest, spread):
    """Train with the fastest method, with gradients that have large elements on rank 1."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import choice
    from hipress.autotune import controller as controllers
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend

    choice.MAX_ERROR = controllers.MAX_ERROR = 0.3
    ms = {fastest: 1.0, "DDP's bf16_compress_hook": 2.0, "maxmin bits=8": 1.5}
    frontend.Sample.seconds = lambda step: ms.get(step.method.name, 4.0)
    trials.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    ddp = DistributedDataParallel(network())
    compression = hipress.torch.compress(ddp, min_size=1000)
    before = str(compression.explain())
    for step in range(14):
        x = torch.randn(8, 64, generator=torch.Generator().manual_seed(step))
        x[:, 0] *= 1 + rank * spread  # one of 64 columns of a gradient is larger than the rest
        ddp.zero_grad()
        ddp(x).square().sum().backward()
    bits = b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())
    settings = compression.settings
    return settings.type, dict(settings.params), bits, str(compression.explain()), before


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("fastest", "spread", "type", "params"),
    [
        ("maxmin bits=5", 0, "maxmin", {"bits": 5}),
        ("maxmin bits=5", 100, "maxmin", {"bits": 8}),
        ("maxmin bits=8", 100, "maxmin", {"bits": 8}),
    ],
)
def test_what_is_rounded_too_coarsely_goes_by_a_gentler_way(fastest, spread, type, params):
    first, second = returned(run_ranks(coarse, 2, fastest, spread))
    assert first[:4] == second[:4] and first[:2] == (type, params)
    changes = params != {"bits": int(fastest[-1])}
    assert ("rounds a gradient too coarsely" in first[3]) == changes
    assert f"> {fastest}" in first[4]
