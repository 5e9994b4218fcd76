"""Residuals after ranks die or join: the remaining ranks keep their own, and nothing is lost."""

import os
import signal
import time

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from torch_states import flat_state

SIZES = {"large": 9000, "matrix": 64 * 96}
SHAPES = {"large": (9000,), "matrix": (64, 96)}


def make(group, type, options):
    from hipress.torch.settings import Settings
    from hipress.torch.start import start
    from hipress.torch.synchronizer import Synchronizer

    parameters = [(n, torch.nn.Parameter(torch.zeros(shape))) for n, shape in SHAPES.items()]
    settings, engine = start(lambda: Settings(type, min_size=1000, **options), group, parameters)
    made = Synchronizer(settings, engine, group, parameters)
    made.keeps = parameters
    return made


def gradient(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(sum(SIZES.values()), generator=generator)


def run(synchronizer, rank, step):
    """Run one step of a single bucket; return the result."""
    from hipress.torch.gradient import packed

    flat = gradient(rank, step)
    result = synchronizer.synchronize(flat, tuple(packed(SIZES.items())), "bucket").wait().clone()
    synchronizer.step += 1
    return result


def set_up(synchronizer):
    """Create the bucket's tasks on all ranks, which then have their states, and no step."""
    from hipress.torch.gradient import packed

    synchronizer._bucket(torch.zeros(sum(SIZES.values())), tuple(packed(SIZES.items())))


def own_and_means(synchronizer):
    """Return this rank's residuals by element, in units of a gradient and in those of a mean."""
    found = torch.zeros(2, sum(SIZES.values()))
    feedback = synchronizer.error_feedback
    starts = {"large": 0, "matrix": SIZES["large"]}
    for (name, index), state in feedback.states.items():
        residual = state.state_dict()["states"].get("residual")
        if residual is not None:
            partition, kind = feedback.partitions[name, index], feedback.kinds[name, index]
            begin = starts[name] + partition.offset
            found[int(kind == 1), begin : begin + partition.count] += torch.from_numpy(residual)
    return found


def total(synchronizer, group, residuals):
    """Return the residuals of all ranks of the group, in units of their mean: float64."""
    import torch.distributed as dist

    own, means = residuals.double()
    mine = own / synchronizer.world_size + means
    dist.all_reduce(mine, group=group)
    return mine


def changes(rank, type, options, before, after):
    """Make steps on ``before`` ranks, and on ``after``; ranks of both keep their residuals."""
    import torch.distributed as dist

    from hipress.runtime.error_feedback import OwnState

    groups = {n: dist.new_group(list(range(n))) for n in sorted({before, after})}
    residuals, states, step = torch.zeros(2, sum(SIZES.values())), None, 3
    if rank < before:
        old = make(groups[before], type, options)
        for number in range(step):
            run(old, rank, number)
        residuals = own_and_means(old)
        states = old.error_feedback.carry_over(SIZES)
    if rank >= after:
        return True  # it died
    new = make(groups[after], type, options)
    assert states is None or set(states) == set(SIZES)
    if states is None:  # it joins
        states = {name: OwnState(size) for name, size in SIZES.items()}
        for state in states.values():
            state.step = step
    new.error_feedback.reshard(states)
    new.step = step
    wanted = total(new, groups[after], residuals)
    assert wanted.abs().max() > 0.1
    set_up(new)
    torch.testing.assert_close(
        total(new, groups[after], own_and_means(new)), wanted, rtol=0, atol=1e-5
    )
    if options["topology"] == "ps":  # which have all tasks of own gradients
        mine = residuals[0] + residuals[1] * after
        assert torch.equal(own_and_means(new)[0], mine)
        assert not own_and_means(new)[1].any()
    steps = {s.state_dict()["step"] for s in new.error_feedback.states.values()}
    assert steps == {step}
    given, applied = wanted.clone(), torch.zeros_like(wanted)
    for number in range(step, step + 4):
        given += sum(gradient(r, number).double() for r in range(after)) / after
        applied += run(new, rank, number)
    left = total(new, groups[after], own_and_means(new))
    torch.testing.assert_close(applied + left, given, rtol=0, atol=1e-4)
    return True


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("before", "after"), [(4, 3), (3, 4), (3, 1)])
@pytest.mark.parametrize("topology", ["ps", "ring", "tree"])
def test_nothing_is_lost(topology, before, after):
    found = run_ranks(changes, 4, "onebit", {"topology": topology}, before, after)
    assert returned(found) == [True] * 4


def momentum_stays(rank):
    """Each rank keeps its own momentum of dgc, too, and no other rank's."""
    import torch.distributed as dist

    options = {"topology": "ps", "params": {"ratio": 0.05, "momentum": 0.9}}
    old = make(dist.group.WORLD, "dgc", options)
    for number in range(3):
        run(old, rank, number)
    two = dist.new_group([0, 1])
    if rank == 2:
        return True
    had = {key: s.state_dict()["states"] for key, s in old.error_feedback.states.items()}
    kinds = old.error_feedback.kinds
    name = next(n for n in next(iter(had.values())) if n != "residual")
    new = make(two, "dgc", options)
    new.error_feedback.reshard(old.error_feedback.carry_over(SIZES))
    set_up(new)
    for gradient_name, size in SIZES.items():

        def whole(of, states, gradient_name=gradient_name, size=size):
            found = torch.zeros(size)
            for key, state in states.items():
                if key[0] == gradient_name and of.error_feedback.kinds[key] == "own":
                    part = of.error_feedback.partitions[key]
                    values = torch.from_numpy(state[name])
                    found[part.offset : part.offset + part.count] = values
            return found

        now = {key: s.state_dict()["states"] for key, s in new.error_feedback.states.items()}
        before = whole(old, had)
        assert before.any() and "own" in kinds.values()
        assert torch.equal(whole(new, now), before)
    return True


def test_momentum_of_a_codec_stays():
    assert returned(run_ranks(momentum_stays, 3)) == [True] * 3


def dies(rank, type, options):
    """The last rank dies in a step, which the remaining ranks repeat as if it had left before
    it."""
    import torch.distributed as dist

    from hipress.torch import HipressError
    from hipress.torch.gradient import packed

    last = dist.get_world_size() - 1
    survivors = dist.new_group(list(range(last)))

    def goes_on(old):
        new = make(survivors, type, options)
        new.error_feedback.reshard(old.error_feedback.carry_over(SIZES))
        new.step = old.step
        results = [run(new, rank, step).numpy().tobytes() for step in range(3, 6)]
        values = flat_state(new.state_dict()).values()
        return results, [v.numpy().tobytes() if torch.is_tensor(v) else v for v in values]

    left = make(dist.group.WORLD, type, options)
    disturbed = make(dist.group.WORLD, type, options)
    for old in left, disturbed:
        for step in range(3):
            run(old, rank, step)
    wanted = None if rank == last else goes_on(left)
    dist.barrier()
    disturbed.begin_transaction()
    if rank == last:
        os.kill(os.getpid(), signal.SIGKILL)
    future = disturbed.synchronize(gradient(rank, 3), packed(SIZES.items()), "bucket")
    with pytest.raises(HipressError, match=f"rank {last}"):
        future.wait()
    began = time.monotonic()
    disturbed.roll_back()
    assert time.monotonic() - began < 10
    assert goes_on(disturbed) == wanted
    return True


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("type", "options"),
    [
        ("onebit", {"topology": "ps"}),
        ("onebit", {"topology": "ring"}),
        ("terngrad", {"topology": "tree"}),
        ("dgc", {"topology": "ps", "params": {"ratio": 0.05, "momentum": 0.9}}),
        ("powersgd", {"topology": "ps", "params": {"rank": 2}}),
    ],
)
def test_a_death_leaves_no_trace(type, options):
    assert run_ranks(dies, 4, type, options) == [True] * 3 + ["died with status -9"]


def twice(rank):
    """Change the ranks again, and load a checkpoint, before any task has taken its part."""
    import torch.distributed as dist

    three, two = dist.new_group([0, 1, 2]), dist.new_group([0, 1])
    options = {"topology": "ps"}
    old = make(dist.group.WORLD, "onebit", options)
    for number in range(2):
        run(old, rank, number)
    own, means = own_and_means(old)
    if rank == 3:
        return True
    middle = make(three, "onebit", options)
    middle.error_feedback.reshard(old.error_feedback.carry_over(SIZES))
    saved = middle.state_dict()
    again = make(three, "onebit", options)
    again.load_state_dict(saved)
    everybodys = [None] * 3
    dist.all_gather_object(everybodys, saved, group=three)
    if rank == 2:
        return True
    new = make(two, "onebit", options)
    new.error_feedback.reshard(again.error_feedback.carry_over(SIZES))
    set_up(new)
    assert torch.equal(own_and_means(new)[0], own + 2 * means)

    # All ranks' states, in a job of another size: what they have in units of the mean.
    resharded = make(two, "onebit", options)
    resharded.load_state_dict({k: v for each in everybodys for k, v in each.items()})
    set_up(resharded)
    wanted = own.double() / 3 + means
    dist.all_reduce(wanted, group=two)
    other = torch.zeros_like(wanted)
    for key, value in flat_state(everybodys[2]).items():
        start = 0 if "/large/" in key else SIZES["large"]
        if key.endswith("/states/residual"):
            share = 1 / 3 if "/-1/" in key else 1.0
            other[start : start + value.numel()] += value.double() * share
    found = total(resharded, two, own_and_means(resharded))
    torch.testing.assert_close(found, wanted + other, rtol=0, atol=1e-5)
    return True


def test_members_change_twice():
    assert returned(run_ranks(twice, 4)) == [True] * 4
