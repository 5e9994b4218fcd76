"""FrozenAdamW: AdamW first, then linear in the gradients."""

import copy

import pytest

from harness.torch_ranks import run_ranks, torch
from hipress.topology import topologies

WARM_UP = 5
TOPOLOGIES = [name for name in topologies.names() if name != topologies.among_workers("ps")]


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
    """The sum of frozen steps is that of the sum of gradients: a late gradient, applied all at
    once, has the effect that it would have had in time."""

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


def fake(topology="ps", momentum=0.9, warmup_steps=WARM_UP, **more):
    """Return a compression of weights without ranks; biases are small."""
    import hipress.torch
    from hipress.torch.settings import Settings

    class Fake(hipress.torch.Compression):
        compresses_now, rank, shared = False, 0, None

        def __init__(self):
            self.settings = Settings(
                "ternary", {"momentum": momentum}, topology, warmup_steps=warmup_steps, **more
            )

        def momentum(self, parameter):
            return self.settings.momentum if parameter.dim() > 1 else 0.0

    return Fake()


@pytest.mark.parametrize("skipped", [0, 2])
def test_a_momentum_of_the_codec_takes_the_place_of_its_own(skipped):
    """A codec's momentum replaces the optimizer's. Weights get running sums of gradients from the
    first compressed step on, as from a codec. This also holds if a GradScaler has skipped steps of
    the warm-up."""
    plain = make(freeze_step=WARM_UP - skipped)
    compression = fake()
    model, optimizer = make(compression=compression)
    velocity = torch.zeros(30, 20)
    for step in range(20):
        generator = torch.Generator().manual_seed(step)
        weight = torch.randn(30, 20, generator=generator)
        bias = torch.randn(30, generator=generator)
        compression.compresses_now = step >= WARM_UP - skipped
        velocity = 0.9 * velocity + weight if compression.compresses_now else velocity
        for (to, stepper), first in (
            (plain, weight),
            ((model, optimizer), velocity if compression.compresses_now else weight),
        ):
            to.weight.grad, to.bias.grad = first.clone(), bias.clone()
            stepper.step()
        for ours, theirs in zip(model.parameters(), plain[0].parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_parameter_that_is_first_used_after_the_warm_up_is_not_divided_by_nothing(momentum):
    compression = fake(momentum=momentum)
    model, optimizer = make(compression=compression, weight_decay=0.0)
    before = model.weight.detach().clone()
    for step in range(WARM_UP + 10):
        compression.compresses_now = step >= WARM_UP
        late = torch.randn(30, 20, generator=torch.Generator().manual_seed(step))
        model.weight.grad = late if compression.compresses_now else None
        model.bias.grad = torch.ones(30)
        optimizer.step()
    moved = (model.weight.detach() - before).abs()
    assert 0 < moved.max() < 10 * 0.01 * 10  # 10 steps of lr, the least denominator a tenth
    assert optimizer.state[model.weight]["exp_avg_sq_updates"] == 3  # half of five, and one more
    assert optimizer.state[model.bias]["exp_avg_sq_updates"] == WARM_UP


def test_after_skipped_steps_it_goes_on_with_the_same_bits():
    """Training continues with the same bits after skipped steps: denominators count their
    gradients, and not only the steps."""
    compression = fake()
    model, optimizer = make(compression=compression)
    train(model, optimizer, 0, WARM_UP - 2)
    compression.compresses_now = True
    train(model, optimizer, WARM_UP, WARM_UP + 6)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    expected = train(model, optimizer, 20, 23)
    model, optimizer = make(compression=compression)
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    assert torch.equal(train(model, optimizer, 20, 23), expected)


def distribute(model, wrapper, settings, more):
    """Return what computes and what steps: ``model`` with ternary by one of the three front
    ends."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    if wrapper == "wrapper":
        outer = {name: settings.pop(name) for name in ("topology", "min_size", "warmup_steps")}
        optimizer = hipress.torch.DistributedOptimizer(
            hipress.torch.FrozenAdamW(model.parameters(), **more),
            model.named_parameters(),
            {"type": "ternary", **settings},
            **outer,
        )
        return model, optimizer
    if wrapper == "fsdp":
        settings.pop("topology")
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        whole, compression = model, hipress.torch.compress_fsdp(model, "ternary", **settings)
    else:
        whole = DistributedDataParallel(model)
        compression = hipress.torch.compress(whole, "ternary", **settings)
    return whole, hipress.torch.FrozenAdamW(model.parameters(), **more, compression=compression)


class Rows(torch.nn.Linear):
    """Model with a linear loss: ``forward``'s arguments are the gradients."""

    def __init__(self):
        super().__init__(100, 40)

    def forward(self, weight, bias):
        return (self.weight * weight).sum() + (self.bias * bias).sum()


def exact(rank, topology, wrapper="ddp"):
    """Train with gradients of one magnitude on each rank, which ternary does not round. With its
    momentum the steps are those of FrozenAdamW on the means of uncompressed gradients."""
    import hipress.torch

    model = Rows()
    plain = copy.deepcopy(model)
    settings = {"min_size": 1000, "warmup_steps": WARM_UP, "momentum": 0.9, "threshold": 0.5}
    more = {"lr": 0.01, "freeze_step": WARM_UP}
    theirs = hipress.torch.FrozenAdamW(plain.parameters(), **more)
    whole, ours = distribute(model, wrapper, {"topology": topology, **settings}, more)
    signs = [
        torch.randn(40, 100, generator=torch.Generator().manual_seed(r)).sign() for r in range(2)
    ]
    for step in range(WARM_UP + 10):
        generator = torch.Generator().manual_seed(100 + step)
        sizes = torch.rand(2, generator=generator) + 0.1
        if step >= WARM_UP:  # then the sum of two ranks also has one magnitude, or is zero
            sizes[1] = sizes[0]
        biases = torch.randn(2, 40, generator=generator)
        ours.zero_grad()
        whole(signs[rank] * sizes[rank], biases[rank]).backward()
        ours.step()
        plain.weight.grad = (signs[0] * sizes[0] + signs[1] * sizes[1]) / 2
        plain.bias.grad = biases.mean(0)
        theirs.step()
        for name, parameter in model.named_parameters():
            found = parameter.full_tensor() if wrapper == "fsdp" else parameter
            torch.testing.assert_close(
                found, plain.get_parameter(name), rtol=1e-4, atol=1e-5, msg=f"{name} {step}"
            )
    if wrapper == "fsdp":
        return [p.full_tensor().detach().numpy().tobytes() for p in model.parameters()]
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def real(rank):
    with pytest.raises(ValueError, match="momentum of 0.9 needs a topology in which every rank's"):
        exact(rank, "ring")
    with pytest.raises(ValueError, match="ternary's momentum of 0.9 needs a topology"):
        exact(rank, "ring", "wrapper")
    found = [exact(rank, topology) for topology in ("ps", "star", "hierarchical")]
    return found + [exact(rank, "ps", wrapper) for wrapper in ("wrapper", "fsdp")]


def test_with_a_real_compression_the_momentum_is_adams_or_it_is_refused():
    first, second = run_ranks(real, 2)
    assert isinstance(first, list), first
    assert first == second


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_momentum_is_whole_where_every_rank_encodes_its_own_gradient(topology, devices):
    from hipress.topology.origins import own_encoders
    from hipress.torch.settings import Settings

    settings = Settings("ternary", {"momentum": 0.9}, topology, devices_per_host=devices)
    graph = settings.graph(200_000, 4, 1)
    each = {len(own_encoders(graph, p)) for p in range(len(graph.partitions))}
    assert settings.encodes_each == (each == {4})
    if settings.encodes_each:
        make(compression=fake(topology, devices_per_host=devices))
    else:
        with pytest.raises(ValueError, match=f"and {topology} encodes sums: give ternary momen"):
            make(compression=fake(topology, devices_per_host=devices))
    make(compression=fake(topology, momentum=0.0, devices_per_host=devices))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"warmup_steps": 7}, "must be the compression's warmup_steps, 7, not 5"),
        ({"momentum": 0.5}, "momentum must be 0 or beta 1, 0.9, not 0.5"),
    ],
)
def test_settings_that_do_not_fit_the_compression_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(compression=fake(**settings))


def test_settings_of_a_loaded_state_or_another_group_are_refused_and_change_nothing():
    model, optimizer = make(compression=fake())
    train(model, optimizer, 0, 3)
    before = copy.deepcopy(optimizer.state_dict())
    for other, sentence in (
        (make(betas=(0.8, 0.999)), "momentum must be 0 or beta 1, 0.8, not 0.9"),
        (make(freeze_step=7), "must be the compression's warmup_steps, 5, not 7"),
    ):
        train(*other, 0, 2)
        with pytest.raises(ValueError, match=sentence):
            optimizer.load_state_dict(other[1].state_dict())
    more = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(ValueError, match="beta 1, 0.7, not 0.9"):
        optimizer.add_param_group({"params": [more], "betas": (0.7, 0.999)})
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert all(
        torch.equal(after["state"][i]["exp_avg"], before["state"][i]["exp_avg"]) for i in (0, 1)
    )


def test_another_kind_of_compression_is_refused():
    with pytest.raises(TypeError, match=r"compress_fsdp\(\) returned, not str"):
        make(compression="onebit")


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
    assert (exact.momentum, Settings("onebit").momentum) == (0.9, 0.0)  # by default


@pytest.mark.parametrize(
    ("name", "options", "advice"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9}, "SGD has momentum 0.9: with both it counts twice"),
        ("SGD", {"lr": 0.1}, ""),
        ("AdamW", {}, "AdamW has beta 1 0.9: with both"),
        ("FrozenAdamW", {"freeze_step": WARM_UP}, "use hipress.torch.FrozenAdamW(..., compression"),
        ("FrozenAdamW", {"freeze_step": WARM_UP, "compression": "the one"}, ""),
    ],
)
def test_a_momentum_that_counts_twice_is_said_once(name, options, advice, caplog):
    import hipress.torch
    from hipress.torch.state.momentum import watch_optimizers

    compression, model = fake(), torch.nn.Linear(20, 30)
    watch_optimizers(compression)
    other = torch.nn.Parameter(torch.zeros(3))  # not compressed
    torch.optim.SGD([other], lr=0.1, momentum=0.9).step()
    assert not caplog.messages
    if "compression" in options:
        options = {**options, "compression": compression}
    cls = getattr(torch.optim, name, None) or getattr(hipress.torch, name)
    train(model, cls(model.parameters(), **options), 0, 2)
    if not advice:
        assert not caplog.messages
        return
    (said,) = caplog.messages
    assert said.startswith("ternary has momentum 0.9 and ") and advice in said
    assert said.endswith("or give ternary momentum=0")


def test_it_is_said_of_each_compression(caplog):
    from hipress.torch.state.momentum import watch_optimizers

    compressions, model = [fake(), fake(momentum=0.5)], torch.nn.Linear(20, 30)
    for compression in compressions:
        watch_optimizers(compression)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), 0, 3)
    assert sorted(said[:24] for said in caplog.messages) == [
        "ternary has momentum 0.5",
        "ternary has momentum 0.9",
    ]


@pytest.mark.parametrize("at", [3, 9])
def test_a_copy_goes_on_with_the_same_bits(at):
    model, optimizer = make()
    train(model, optimizer, 0, at)
    twins = copy.deepcopy((model, optimizer))
    twins[1].load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert torch.equal(train(*twins, at, 12), train(model, optimizer, at, 12))


def test_with_a_compression_it_is_not_copied():
    _, optimizer = make(freeze_step=WARM_UP, compression=fake())
    with pytest.raises(TypeError, match=r"cannot be copied or saved whole: use its state_dict\(\)"):
        copy.deepcopy(optimizer)
