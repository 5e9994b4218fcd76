"""FrozenAdamW: AdamW first, then linear in the gradients."""

import copy
from types import SimpleNamespace

import pytest

from torch_cluster import torch


def make(cls=None, **more):
    import hipress.torch

    torch.manual_seed(0)
    model = torch.nn.Linear(20, 30)
    if cls is not None:
        return model, cls(model.parameters(), lr=0.01, **more)
    more.setdefault("freeze_step", 5)
    return model, hipress.torch.FrozenAdamW(model.parameters(), lr=0.01, **more)


def train(model, optimizer, first, last, scale=1.0):
    for step in range(first, last):
        generator = torch.Generator().manual_seed(step)
        for parameter in model.parameters():
            parameter.grad = scale * torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_it_is_adamw_until_it_freezes():
    ours = train(*make(freeze_step=8), 0, 8)
    theirs = train(*make(torch.optim.AdamW), 0, 8)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_then_the_sum_of_steps_is_that_of_the_sum_of_gradients():
    """A gradient that comes late, all at once, does what it would have done in time."""

    def run(lumps):
        model, optimizer = make(betas=(0.0, 0.999), weight_decay=0.0)
        train(model, optimizer, 0, 5)
        before = model.weight.detach().clone()
        for lump in lumps:
            model.weight.grad, model.bias.grad = torch.full((30, 20), lump), None
            optimizer.step()
        return model.weight.detach() - before

    in_time = run([0.1] * 10)
    torch.testing.assert_close(run([0.0] * 9 + [1.0]), in_time, rtol=1e-4, atol=1e-7)


def test_elements_without_gradients_are_not_divided_by_nothing():
    model, optimizer = make(freeze_step=3, floor=0.1)
    for step in range(6):
        model.weight.grad = torch.ones(30, 20)
        model.weight.grad[0] = 0.0 if step < 3 else 1.0
        before = model.weight.detach().clone()
        optimizer.step()
    moved = (model.weight.detach() - before).abs()
    assert moved[0].max() <= 11 * moved[1].max()


class Compression:
    """What FrozenAdamW asks of one: weights have a momentum of 0.9, other parameters none."""

    def __init__(self, momentum=0.9, warmup_steps=5):
        self.settings = SimpleNamespace(momentum=momentum, warmup_steps=warmup_steps)
        self.compresses_now = False

    def momentum(self, parameter):
        return self.settings.momentum if parameter.dim() > 1 else 0.0


@pytest.mark.parametrize("skipped", [0, 2])
def test_a_momentum_of_the_codec_takes_the_place_of_its_own(skipped):
    """Weights get running sums of gradients from the first compressed step on, as from a codec;
    so too if a GradScaler has skipped steps of the warm-up."""
    plain = make(freeze_step=5 - skipped)
    compression = Compression()
    model, optimizer = make(compression=compression)
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    velocity = torch.zeros(30, 20)
    for step in range(20):
        generator = torch.Generator().manual_seed(step)
        weight = torch.randn(30, 20, generator=generator)
        bias = torch.randn(30, generator=generator)
        compression.compresses_now = step >= 5 - skipped
        if compression.compresses_now:
            velocity = 0.9 * velocity + weight
        for (to, stepper), first in (
            (plain, weight), ((model, optimizer), velocity if step >= 5 - skipped else weight),
        ):  # fmt: skip
            to.weight.grad, to.bias.grad = first.clone(), bias.clone()
            stepper.step()
        for ours, theirs in zip(model.parameters(), plain[0].parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("compression", "sentence"),
    [
        (Compression(warmup_steps=7), "must be the compression's warmup_steps, 7, not 5"),
        (Compression(momentum=0.5), "momentum must be 0 or beta 1, 0.9, not 0.5"),
    ],
)
def test_settings_that_do_not_fit_the_compression_are_refused(compression, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(compression=compression)


@pytest.mark.parametrize("at", [3, 9])
def test_its_state_goes_on_with_the_same_bits(at):
    model, optimizer = make()
    train(model, optimizer, 0, at)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    expected = train(model, optimizer, at, 12)
    model, optimizer = make(freeze_step=77)  # the state's counts
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    assert torch.equal(train(model, optimizer, at, 12), expected)


def test_it_loads_the_state_of_adamw():
    model, adamw = make(torch.optim.AdamW)
    train(model, adamw, 0, 5)
    other, ours = make(freeze_step=20)
    other.load_state_dict(model.state_dict())
    ours.load_state_dict(copy.deepcopy(adamw.state_dict()))
    torch.testing.assert_close(
        train(other, ours, 5, 12), train(model, adamw, 5, 12), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"freeze_step": 0}, "freeze_step must be a whole number from 1 on, not 0"),
        ({"floor": 1.0}, r"floor must be in \[0, 1\), not 1.0"),
        ({"betas": (0.9, 1.0)}, r"beta 2 must be in \[0, 1\), not 1.0"),
        ({"eps": -1.0}, "eps must be 0 or more, not -1.0"),
    ],
)
def test_wrong_values_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**options)


def test_its_warm_up_is_uncompressed_also_with_dgc():
    from hipress.torch.settings import Settings

    ramp = Settings("dgc", {"ratio": 0.01}, warmup_steps=30)
    assert (ramp.params["warmup"], ramp.warmup_steps) == (30, 0)
    exact = Settings("dgc", {"ratio": 0.01, "warmup": 0}, warmup_steps=30)
    assert (exact.params["warmup"], exact.warmup_steps) == (0, 30)
