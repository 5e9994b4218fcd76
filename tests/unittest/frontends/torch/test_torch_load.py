"""States that are loaded into compressions that have already made steps, or by other means."""

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from torch_states import changed, flat_state

CODECS = [
    ("onebit", {}),
    ("dgc", {"ratio": 0.1, "warmup": 0}),
    ("onebit", {"shared_momentum": 0.9}),
    ("powersgd", {"rank": 1}),
]


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.Linear(48, 5))


def ddp(type="onebit", **params):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    model = DistributedDataParallel(network())
    return model, hipress.torch.compress(model, type, min_size=1000, **params)


def gradients(model, rank, steps):
    found = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(10 * rank + step)
        model.zero_grad()
        model(torch.randn(2, 64, generator=generator)).square().sum().backward()
        found += [p.grad.clone() for p in model.parameters()]
    return found


def back_to_the_start(rank, type, params, topology):
    """Make steps, load a state from before the first one, and repeat them. The state may be that of
    another topology, which has no residuals to replace the present ones."""
    model, compression = ddp(type, topology=topology, **params)
    saved = ddp(type, **params)[1].state_dict()
    assert not any("/states/" in key for key in flat_state(saved))
    first = gradients(model, rank, 3)
    compression.load_state_dict(saved)
    assert compression.step == 0
    for key, values in flat_state(compression.state_dict()).items():
        if "/states/" in key and not key.endswith("start_q"):
            assert not values.any(), key
    return all(map(torch.equal, first, gradients(model, rank, 3)))


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "ring"])
@pytest.mark.parametrize(("type", "params"), CODECS, ids=["onebit", "dgc", "shared", "powersgd"])
def test_a_state_without_residuals_leaves_none(type, params, topology):
    if (type, topology) == ("dgc", "ring"):
        params = {**params, "momentum": 0.0}
    assert returned(run_ranks(back_to_the_start, 2, type, params, topology)) == [True, True]


def test_a_state_on_a_device_is_left_as_new_likewise():
    from hipress.torch.state.error_feedback import Codecs, DeviceState, ErrorFeedback

    codecs = Codecs("onebit", {})
    state = DeviceState(codecs, "own", 8, torch.device("cpu"))
    state.states["residual"].fill_(1.0)
    state.step, state.stream = 3, 7
    feedback = ErrorFeedback(codecs, 0, 2)
    feedback.states["weight", 0] = state
    feedback.load({}, {})
    assert not state.states["residual"].any() and (state.step, state.stream) == (0, 7)


def by_pytorch(rank, path):
    """Load with torch.distributed.checkpoint.load(): before the first step, when DDP has no
    residuals and an optimizer has some."""
    import torch.distributed.checkpoint as dcp

    import hipress.torch

    def optimizer():
        model = network()
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        return model, hipress.torch.DistributedOptimizer(
            inner, model.named_parameters(), "onebit", min_size=1000
        )

    def residuals(compression):
        found = flat_state(compression.state_dict())
        return {key: found[key] for key in found if "/states/" in key}

    model, before = ddp()
    gradients(model, rank, 3)
    dcp.save({"hipress": before}, checkpoint_id=f"{path}/ddp")
    _, after = ddp()
    dcp.load({"hipress": after}, checkpoint_id=f"{path}/ddp")
    assert after.step == 3
    alike = [residuals(before), residuals(after)]

    model, before = optimizer()
    for _ in range(3):
        gradients(model, rank, 1)
        before.step()
    dcp.save({"hipress": before.compression}, checkpoint_id=f"{path}/optimizer")
    _, after = optimizer()
    dcp.load({"hipress": after.compression}, checkpoint_id=f"{path}/optimizer")
    assert after.compression.step == 3
    alike += [residuals(before.compression), residuals(after.compression)]
    for one, other in (alike[:2], alike[2:]):
        assert one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
        assert any(values.any() for values in one.values())


def test_pytorchs_own_load_restores_everything_before_the_first_step(tmp_path):
    returned(run_ranks(by_pytorch, 2, str(tmp_path)))


def of_a_warm_up(type, params):
    import hipress.torch

    model = network()
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.1),
        model.named_parameters(),
        {"type": type, **params},
        min_size=1000,
        warmup_steps=100,
    )
    return optimizer.compression


def saved_in_a_warm_up(rank, type, params):
    return of_a_warm_up(type, params).state_dict()


def loaded_in_a_warm_up(rank, type, params, saved):
    compression = of_a_warm_up(type, params)
    compression.load_state_dict(changed(saved, 0, step=40))
    return compression.step


@pytest.mark.slow
@pytest.mark.parametrize(("type", "params"), [CODECS[0], CODECS[3]], ids=["onebit", "powersgd"])
def test_one_ranks_state_of_a_warm_up_is_enough_for_a_job_of_another_size(type, params):
    saved, _ = returned(run_ranks(saved_in_a_warm_up, 2, type, params))
    assert not any("/states/" in key for key in flat_state(saved))
    assert returned(run_ranks(loaded_in_a_warm_up, 3, type, params, saved)) == [40] * 3


def test_every_saved_rank_is_loaded_by_one_rank():
    from hipress.torch.state.saved import SLOTS, pack, unpack

    for saved in (1, 2, 5, SLOTS):
        checkpoint = {k: v for r in range(saved) for k, v in pack(r, saved, {"step": r}).items()}
        assert checkpoint.keys() == {f"rank{r}" for r in range(SLOTS)}
        for size in (1, 3, 8):
            shares = [unpack({k: checkpoint[k] for k in pack(r, size, {})}) for r in range(size)]
            steps = [part["step"] for share in shares for part in share.values() if part]
            assert sorted(steps) == list(range(saved))
    assert list(pack(300, 400, {})) == ["rank300"]  # more ranks than keys


@pytest.mark.parametrize(
    "state", [{}, {"rank0/step": 1}, {"rank0": {"step": 1}}, {"step": (1,)}, {"rank0": ({}, {})}]
)
def test_state_of_another_form_is_refused(state):
    from hipress.torch.state.saved import unpack

    with pytest.raises(ValueError, match="is no key of a compression's state|is empty"):
        unpack(state)


def with_a_rank_missing(rank):
    """Load states of three ranks, of which no rank has the last one, on two ranks."""
    _, compression = ddp()
    state = compression.state_dict()
    key = f"rank{rank}"
    (part,) = state[key]
    state[key] = ({**part, "world_size": 3},)
    with pytest.raises(
        ValueError, match=r"of 3 ranks, and rank 2's is not there; .*checkpoint\(\)"
    ):
        compression.load_state_dict(state)


def test_missing_state_of_a_rank_is_reported_on_all_ranks():
    returned(run_ranks(with_a_rank_missing, 2))
