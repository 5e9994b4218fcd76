"""Core of Local SGD on one worker's NumPy arrays, with an average that changes nothing."""

import numpy as np
import pytest

from hipress.local_sgd.arrays import ArrayWeights, divide_if_finite
from hipress.local_sgd.fragment_scheduler import FragmentScheduler
from hipress.local_sgd.outer import OuterWeights
from hipress.local_sgd.schedule import Schedule, split

H = 6


class Weights(ArrayWeights):
    """Model with two weights of two elements."""

    def __init__(self):
        self.values = {name: np.ones(2, np.float32) for name in ("first", "second")}
        self.resets = 0

    def shapes(self):
        return {name: values.shape for name, values in self.values.items()}

    def read(self, name):
        return self.values[name]

    def write(self, name, values):
        self.values[name] = values.copy()

    def forget_non_finite(self):
        self.resets += 1


class Optimizer:
    """Optimizer: SGD with learning rate 0.5."""

    def attach(self, outer):
        self.names = list(outer)

    def step(self, fragment):
        for name, outer in fragment.outer.items():
            outer -= np.float32(0.5) * fragment.mean[name]

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


class Average:
    """Average of one worker, which records what starts and finishes."""

    def __init__(self):
        self.events, self.arrivals = [], []

    def allocate(self, fragments):
        for fragment in fragments:
            fragment.mean = {n: np.zeros_like(outer) for n, outer in fragment.outer.items()}

    def start(self, fragment, arrival):
        self.events.append(("start", fragment.number))
        self.arrivals.append(arrival)

    def finish(self, fragment):
        self.events.append(("finish", fragment.number))
        return divide_if_finite(fragment.mean, 1)


@pytest.fixture
def weights():
    return Weights()


def scheduler_of(weights, *parts, **options):
    outer = OuterWeights(parts or [list(weights.values)], weights, Optimizer(), Average())
    return FragmentScheduler(outer, Schedule(H, **options))


def events_after(scheduler, steps):
    """Return the events after each inner step that has some."""
    found = {}
    for step in range(1, steps + 1):
        scheduler.advance()
        if scheduler.outer.average.events:
            found[step], scheduler.outer.average.events = scheduler.outer.average.events, []
    return found


def test_fragments_have_outer_steps_at_different_inner_steps(weights):
    found = events_after(scheduler_of(weights, ["first"], ["second"]), 9)
    assert found == {
        3: [("start", 0), ("finish", 0)],
        6: [("start", 1), ("finish", 1)],
        9: [("start", 0), ("finish", 0)],
    }


def test_delay_completes_an_outer_step_later(weights):
    found = events_after(scheduler_of(weights, ["first"], ["second"], delay=4), 10)
    assert found == {
        3: [("start", 0)],
        6: [("start", 1)],
        7: [("finish", 0)],
        9: [("start", 0)],
        10: [("finish", 1)],
    }


def test_early_steps_average_all_fragments_without_the_optimizer(weights):
    scheduler = scheduler_of(weights, ["first"], ["second"], early_steps=3, early_sync_every=2)
    weights.values["first"] += 4
    found = events_after(scheduler, 6)
    assert [(step, len(events)) for step, events in found.items()] == [(2, 4), (3, 4), (6, 2)]
    assert scheduler.outer.fragments[0].outer["first"].tolist() == [5, 5]


def test_outer_step_uses_the_mean_and_keeps_a_share_of_the_weights(weights):
    scheduler = scheduler_of(weights, alpha=0.25)
    weights.values["first"] += 4
    events_after(scheduler, H)
    # The pseudo-gradient is 1 - 5.
    assert dict(scheduler.outer.items())["first"].tolist() == [3, 3]
    assert weights.values["first"].tolist() == [0.25 * 5 + 0.75 * 3] * 2


def test_a_nan_resets_the_weights_of_all_fragments(weights):
    scheduler = scheduler_of(weights, ["first"], ["second"], delay=4)
    weights.values["first"][0] = np.nan
    weights.values["second"] += 4
    events_after(scheduler, 6)
    scheduler.advance()
    assert scheduler.outer.average.events == [("finish", 0), ("finish", 1)]
    assert not any(fragment.is_pending for fragment in scheduler.outer.fragments)
    assert weights.values["first"].tolist() == [1, 1]
    assert weights.values["second"].tolist() == dict(scheduler.outer.items())["second"].tolist()
    assert weights.resets == 1


def test_a_late_callback_does_not_end_the_next_average(weights):
    outer = scheduler_of(weights).outer
    (fragment,) = outer.fragments
    outer.start(fragment)
    outer.complete(fragment)
    first = fragment.seconds
    outer.start(fragment)
    outer.average.arrivals[0].mark()
    assert first > 0 == fragment.seconds


def test_splitting_again_keeps_the_outer_weights(weights):
    outer = scheduler_of(weights).outer
    before = dict(outer.items())
    outer.split([["first"], ["second"]])
    assert [list(fragment.outer) for fragment in outer.fragments] == [["first"], ["second"]]
    assert all(values is before[name] for name, values in outer.items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sync_every": 0}, "sync_every must be 1 or more, not 0"),
        ({"early_steps": -1}, "early_steps must be 0 or more"),
        ({"delay": H}, r"fragment_sync_delay must be in \[0, sync_every\) = \[0, 6\)"),
        ({"alpha": 1}, r"fragment_update_alpha must be in \[0, 1\), not 1"),
    ],
)
def test_schedule_refuses_values_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        Schedule(**{"sync_every": H, **options})


def test_split_makes_no_empty_run():
    assert split([1, 1, 1, 1], 2) == [[0, 1], [2, 3]]
    assert split([100, 1, 1], 3) == [[0], [1, 2]]


def test_finish_raises_again_after_a_failed_outer_step():
    class FailedAverage(Average):
        def finish(self, fragment):
            raise RuntimeError("worker 1 died")

    weights = Weights()
    outer = OuterWeights([["first"], ["second"]], weights, Optimizer(), FailedAverage())
    scheduler = FragmentScheduler(outer, Schedule(H, delay=2))
    for _ in range(H // 2):
        scheduler.advance()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="worker 1 died"):
            scheduler.finish()
    assert (weights.values["first"] == 1).all()
