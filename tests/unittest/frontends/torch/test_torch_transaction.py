"""Steps as transactions: the changes of a step can be rolled back bit for bit on the survivors."""

import contextlib
import os
import random
import signal
import time

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from torch_states import flat_state

SHAPES = {"large": (300, 40), "matrix": (64, 96), "small": (10,), "vector": (5000,)}
BUCKETS = (("large", "small"), ("matrix",), ("vector",))


class Training:
    """Training of three buckets with a separate synchronizer; gradients are a function of the
    step."""

    def __init__(self, rank, type, **options):
        import torch.distributed as dist

        from hipress.torch.settings import Settings
        from hipress.torch.start import start
        from hipress.torch.synchronizer import Synchronizer

        parameters = [(n, torch.nn.Parameter(torch.zeros(shape))) for n, shape in SHAPES.items()]
        settings, engine = start(
            lambda: Settings(type, min_size=1000, **options), dist.group.WORLD, parameters
        )
        self.rank, self.kept = rank, parameters
        self.synchronizer = Synchronizer(settings, engine, dist.group.WORLD, parameters)

    def start(self, names, step, value=None):
        """Start a bucket; return its future."""
        from hipress.torch.gradient import Gradient

        generator = torch.Generator().manual_seed(1000 * step + 10 * self.rank + len(names[0]))
        gradients, parts, offset = [], [], 0
        for name in names:
            count = SHAPES[name][0] * (SHAPES[name][1] if len(SHAPES[name]) > 1 else 1)
            gradients.append(Gradient(name, offset, count))
            parts.append(torch.randn(count, generator=generator))
            offset += count
        flat = torch.cat(parts)
        if value is not None:
            flat[0] = value
        return self.synchronizer.synchronize(flat, gradients, "bucket")

    def step(self, step, value=None):
        """Make one step; return its results' bytes."""
        results = [self.start(names, step, value).wait().numpy().tobytes() for names in BUCKETS]
        self.synchronizer.step += 1
        return results

    def state(self):
        """Return the state_dict() in a form that can be compared bit for bit."""
        found = flat_state(self.synchronizer.state_dict())
        return {k: v.numpy().tobytes() if torch.is_tensor(v) else v for k, v in found.items()}


def differing(a, b):
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def completed(rank, type, options):
    """Roll back and repeat the 4th step, with a NaN before: the result equals undisturbed
    training."""
    undisturbed = Training(rank, type, **options)
    wanted = [undisturbed.step(step) for step in range(5)]
    training = Training(rank, type, **options)
    found = [training.step(step) for step in range(3)]
    before = training.state()
    for value, step in ((None, 3), (float("nan"), 3), (None, 7)):
        training.synchronizer.begin_transaction()
        training.step(step, value)
        assert type == "none" or differing(training.state(), before)
        training.synchronizer.roll_back()
        assert not differing(training.state(), before)
        assert training.synchronizer.step == 3
    for step in (3, 4):
        training.synchronizer.begin_transaction()
        found.append(training.step(step))
    assert found == wanted
    assert training.state() == undisturbed.state()
    training.synchronizer.roll_back()  # the last one only
    training.step(4)
    assert training.state() == undisturbed.state()
    return True


def each(rank, type, options):
    """Roll back every step once, also those that end a warm-up."""
    undisturbed = Training(rank, type, **options)
    wanted = [undisturbed.step(step) for step in range(5)]
    training = Training(rank, type, **options)
    found = []
    for step in range(5):
        training.synchronizer.begin_transaction()
        training.step(step + 100)
        training.synchronizer.roll_back()
        training.synchronizer.begin_transaction()
        found.append(training.step(step))
    assert found == wanted
    assert training.state() == undisturbed.state()
    return True


def commits(rank, type, options):
    """Commit a step that some rank has completed; of low rank, also where Q has no sum here."""
    training = Training(rank, type, **options)
    for step in range(2):
        training.step(step)
    training.synchronizer.begin_transaction()
    training.step(2)
    done = training.state()
    for state in training.synchronizer.error_feedback.states.values():
        if type == "powersgd":  # as it is before the library keeps the step
            matrix, before = state.matrix, state._before
            matrix.last, matrix.next = matrix.next, matrix.last
            matrix.last_q, matrix.own_q = matrix.own_q, matrix.last_q
            for name, values in before.values.items():
                state._memory[name].copy_(values)
            state.step = before.step
    assert type != "powersgd" or differing(training.state(), done)
    training.synchronizer.commit()
    assert all(key.endswith("start_q") for key in differing(training.state(), done))
    assert training.synchronizer.step == 3
    with pytest.raises(ValueError, match="no step to roll back"):
        training.synchronizer.roll_back()
    if type == "powersgd":  # a rank that has made no Q has sent nothing
        training.synchronizer.begin_transaction()
        before = training.state()
        for state in training.synchronizer.error_feedback.states.values():
            state.save(training.synchronizer.error_feedback.transaction)
        training.synchronizer.commit()
        assert differing(training.state(), before) == [f"rank{rank}/step"]
    return True


def refuses(rank):
    """Refuse operations that cannot be rolled back with a message."""
    from hipress.torch import HipressError

    training = Training(rank, "powersgd", params={"rank": 2})
    synchronizer = training.synchronizer
    with pytest.raises(ValueError, match="no step to roll back"):
        synchronizer.roll_back()
    training.step(0)
    saved = synchronizer.state_dict()
    synchronizer.begin_transaction()
    training.step(1)
    synchronizer.load_state_dict(saved)
    with pytest.raises(ValueError, match="no step to roll back"):
        synchronizer.roll_back()
    synchronizer.begin_transaction()
    if rank == 0:
        future = training.start(BUCKETS[0], 1)
        with pytest.raises(HipressError, match="before the step before it is over"):
            synchronizer.begin_transaction()
        torch.distributed.barrier()
    else:  # so the step is not over before
        torch.distributed.barrier()
        future = training.start(BUCKETS[0], 1)
    future.wait()
    torch.distributed.barrier()  # a rank that is refused ends the job, and another's first step
    with pytest.raises(HipressError, match="two steps in one transaction"):
        training.start(BUCKETS[0], 2).wait()
    return True


def first(rank, type, options):
    """Rolling back the very first step leaves zeros."""
    undisturbed = Training(rank, type, **options)
    wanted = [undisturbed.step(step) for step in range(2)]
    training = Training(rank, type, **options)
    training.synchronizer.begin_transaction()
    training.step(5)
    training.synchronizer.roll_back()
    state = flat_state(training.synchronizer.state_dict())
    assert state[f"rank{rank}/step"] == 0
    for key, value in state.items():
        if torch.is_tensor(value) and not key.endswith("start_q"):
            assert not value.any(), key
    assert [training.step(step) for step in range(2)] == wanted
    assert training.state() == undisturbed.state()
    return True


def killed(rank, type, options, victim):
    """A rank dies when the first bucket has finished, the second is half-way, the third not
    begun."""
    import torch.distributed as dist

    from hipress.torch import HipressError

    training = Training(rank, type, **options)
    for step in range(3):
        training.step(step)
    before = training.state()
    training.synchronizer.begin_transaction()
    training.start(BUCKETS[0], 3).wait()
    dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    half = training.start(BUCKETS[1], 3)
    if rank % 2:  # others are still in progress when it is rolled back
        with pytest.raises(HipressError):
            half.wait()
    training.synchronizer.step += 1
    training.synchronizer.roll_back()
    assert not differing(training.state(), before)
    assert training.synchronizer.engine.member.left_job
    assert half.done()
    with pytest.raises(HipressError):
        half.wait()
    with pytest.raises(ValueError, match="no step to roll back"):
        training.synchronizer.roll_back()
    return True


def at_any_time(rank, type, seed):
    """A rank dies at any time in a step of large buckets; what was done until then is rolled
    back."""
    import torch.distributed as dist

    from hipress.torch import HipressError

    SHAPES["large"] = (1500, 700)
    training = Training(rank, type, topology="ps", shared_momentum=0.5)
    for step in range(2):
        training.step(step)
    before = training.state()
    dist.barrier()
    training.synchronizer.begin_transaction()
    futures = [training.start(names, 2) for names in BUCKETS]
    if rank == 1:
        time.sleep(random.Random(seed).uniform(0, 0.004))
        os.kill(os.getpid(), signal.SIGKILL)
    for future in futures[: seed % 4]:
        with contextlib.suppress(HipressError):
            future.wait()
    training.synchronizer.roll_back()
    assert not differing(training.state(), before)
    return True


CASES = [
    ("onebit", {"topology": "ps"}),
    ("onebit", {"topology": "ring", "shared_momentum": 0.9}),
    ("2bit", {"topology": "ring", "params": {"threshold": 0.1}}),
    ("terngrad", {"topology": "ps"}),
    ("terngrad", {"topology": "ring"}),
    ("dgc", {"topology": "ps", "params": {"ratio": 0.05, "momentum": 0.9}}),
    ("dgc", {"topology": "ring", "params": {"ratio": 0.05, "momentum": 0.0}}),
    ("maxmin", {"topology": "tree"}),
    ("none", {"topology": "ps"}),
    ("none", {"topology": "ring", "shared_momentum": 0.5}),
    ("powersgd", {"topology": "ps", "params": {"rank": 2}}),
]
IDS = [f"{type}-{'-'.join(map(str, options.values()))}" for type, options in CASES]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type", "options"), CASES, ids=IDS)
def test_a_completed_step_is_put_back(type, options):
    assert returned(run_ranks(completed, 3, type, options)) == [True] * 3


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("type", "options"),
    [
        ("onebit", {"topology": "ps", "shared_momentum": 0.9, "warmup_steps": 2}),
        ("terngrad", {"topology": "hierarchical", "devices_per_host": 2}),
        ("dgc", {"topology": "ps", "warmup_steps": 3, "params": {"ratio": 0.05}}),
        ("powersgd", {"topology": "ring", "warmup_steps": 1, "params": {"rank": 1}}),
    ],
)
def test_every_step_is_put_back(type, options):
    assert returned(run_ranks(each, 4, type, options)) == [True] * 4


@pytest.mark.parametrize(
    ("type", "options"),
    [("onebit", {"shared_momentum": 0.5}), ("powersgd", {"params": {"rank": 2}})],
)
def test_a_step_that_others_have_completed_stays(type, options):
    assert returned(run_ranks(commits, 2, type, options)) == [True] * 2


def test_what_cannot_be_put_back_is_refused():
    assert returned(run_ranks(refuses, 2)) == [True] * 2


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type", "options"), CASES, ids=IDS)
def test_the_first_step_is_put_back(type, options):
    assert returned(run_ranks(first, 2, type, options)) == [True] * 2


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("seed", range(6))
def test_survivors_put_a_step_back_at_any_time(seed):
    found = run_ranks(at_any_time, 3, ("onebit", "terngrad")[seed % 2], seed)
    assert found == [True, "died with status -9", True]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize(("type", "options"), CASES, ids=IDS)
def test_survivors_put_a_step_back(type, options, victim):
    found = run_ranks(killed, 4, type, options, victim)
    assert found.pop(victim) == "died with status -9"
    assert found == [True] * 3
