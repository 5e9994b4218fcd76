"""FSDP2 layers that are frozen in compress_fsdp() and unfrozen later, with the results of layers
that were never frozen."""

import logging

import pytest

import test_torch_fsdp_momentum as momentum
import test_torch_fsdp_state as state
from harness.torch_ranks import returned, run_ranks, torch
from test_torch_fsdp_state import RANKS, SHAPES, job, result

FACTOR = 0.9
LATE = ("uneven", "bias")
SHARED = {"shared_momentum": FACTOR, "warmup_steps": 2}


def steps(kind, frozen):
    """Return the weights after some steps of 1-bit Adam."""
    import torch.distributed as dist

    import hipress.torch

    model, compression = job(kind, "onebit", SHARED, frozen)
    optimizer = hipress.torch.FrozenAdamW(
        model.parameters(), lr=0.01, freeze_step=2, compression=compression
    )
    for step in range(5):
        result(model, dist.get_rank(), step)
        optimizer.step()
    assert {compression.momentum(p) for p in model.parameters()} == {FACTOR}
    return [p.full_tensor().detach().numpy().tobytes() for p in model.parameters()]


def trains(rank, kind):
    assert steps(kind, LATE) == steps(kind, ())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fsdp2", "hsdp"])
def test_their_momentum_is_known(kind):
    returned(run_ranks(trains, RANKS[kind], kind))


def unfreezes(rank):
    """Make one step while layers are frozen, the next ones with all layers: sums begin, and the
    optimizer steps are observed."""
    model, compression = job("fsdp2", "none", {"shared_momentum": FACTOR}, LATE)
    late = [model.layers[name].weight for name in LATE]
    for p in late:
        p.requires_grad_(False)
    for p in model.parameters():
        p.grad = None
    model(rank, 0).backward()
    assert all(p.grad is None for p in late) and compression.step == 1
    for p in late:
        p.requires_grad_(True)
    plain = {n: sum(state.gradient_of(n, SHAPES[n], r, 1) for r in range(2)) / 2 for n in LATE}
    found = result(model, rank, 1)
    for name in LATE:
        torch.testing.assert_close(found[f"layers.{name}.weight"], plain[name], atol=1e-6, rtol=0)
    found = result(model, rank, None)
    for name in LATE:
        torch.testing.assert_close(
            found[f"layers.{name}.weight"], FACTOR * plain[name], atol=1e-6, rtol=0
        )
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    torch.optim.SGD(late, lr=0.1, momentum=FACTOR).step()
    return said


def test_an_optimizer_with_momentum_of_them_is_warned_of():
    said, _ = returned(run_ranks(unfreezes, 2))
    assert any("counts twice" in each for each in said), said


@pytest.mark.slow
@pytest.mark.parametrize("what", [state, momentum])
@pytest.mark.parametrize(
    ("pair", "frozen"),
    [(("hsdp", "fsdp3"), (LATE, ())), (("fsdp3", "hsdp"), ((), LATE))],
)
def test_another_number_of_ranks_gets_what_was_left_of_them(what, pair, frozen):
    returned(run_ranks(what.moves, 4, [pair], frozen, timeout=90))


def resumes(rank, kind):
    """Resume: a rank's own state is enough, whichever layers are frozen in the call."""
    made = job(kind, "topk", {"ratio": 0.1}, LATE)
    result(made[0], rank, 0)
    other = job(kind, "topk", {"ratio": 0.1})
    other[1].load_state_dict(made[1].state_dict())
    ours, theirs = (result(model, rank, 1) for model, _ in (made, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["fsdp2", "hsdp"])
def test_the_same_job_goes_on_with_other_layers_frozen(kind):
    returned(run_ranks(resumes, RANKS[kind], kind))


def chooses(rank):
    """Frozen parameters are not measured; vectors are sent uncompressed, also once they are
    unfrozen."""
    from hipress.torch.autotune import frontend
    from known_times import measure

    measured, made = [], frontend.GroupFrontend.__init__

    def init(self, settings, engine, group, device, dtype, shapes, *more):
        measured.append(set(shapes))
        made(self, settings, engine, group, device, dtype, shapes, *more)

    frontend.GroupFrontend.__init__ = init
    measure(lambda method_name: 1.0 if method_name == "maxmin bits=8" else 9.0)
    _, compression = job("fsdp2", "auto", {}, LATE)
    name = "layers.bias.weight"
    return measured, compression.compresses(name, 1500), compression.compresses("layers.x", 1500)


def test_auto_measures_what_is_trained():
    for measured, vector, matrix in returned(run_ranks(chooses, 2)):
        assert measured == [{"layers.few_rows.weight"}]
        assert not vector and matrix


def refuses(rank):
    """Refuse ranks that freeze different layers, and layers that could not be compressed if they
    were trained."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    import hipress.torch

    with pytest.raises(ValueError) as differ:
        job("fsdp2", "onebit", {}, LATE[rank:])
    model = state.Model()
    for name, layer in model.layers.items():
        if name == "bias":
            layer.double().requires_grad_(False)
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.float32))
    hipress.torch.compress_fsdp(fully_shard(model), "onebit", min_size=100)
    model(rank, 0).backward()
    model.requires_grad_()
    with pytest.raises(hipress.torch.HipressError) as unfrozen:
        model(rank, 1).backward()
    return str(differ.value), str(unfrozen.value)


@pytest.mark.slow
def test_misuse():
    for differ, unfrozen in returned(run_ranks(refuses, 2)):
        assert "ranks 0 and 1 differ in frozen parameters" in differ
        assert "'layers.bias.weight' was frozen when compress_fsdp() was called" in unfrozen
