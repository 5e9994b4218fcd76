"""One rank's choice of a method for outer steps, with a front end that simulates other ranks."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

from hipress.autotune.measurement import Measurement
from hipress.autotune.methods import OUTER_METHODS
from hipress.autotune.outer_steps import OuterStepController, first_steps, fragment_counts
from hipress.elastic.training.outer_steps import ArrayOuterSteps
from hipress.elastic.training.sums import buckets
from hipress.local_sgd.arrays import ArrayWeights
from hipress.local_sgd.schedule import Schedule

H = 30


class Front:
    """Front end whose synchronizations take given seconds with each method."""

    rank, log_rank, num_ranks, elements, outer_methods = 1, 1, 2, 1000, OUTER_METHODS

    def __init__(self, seconds):
        self.seconds, self.compared, self.reductions, self.used = seconds, 0, self, []

    def measure(self, methods):
        return [Measurement(seconds, 1000) for seconds in self.seconds]

    def time_fragments(self, method, count):
        return [self.seconds[OUTER_METHODS.index(method)] / count] * count

    def begin_max(self, values):
        self.compared += 1
        return list(values)

    def end_max(self, begun):
        return begun

    def max(self, *values):
        return self.end_max(self.begin_max(values))

    def use(self, method):
        self.used.append(method)

    def bytes_sent(self):
        return 0


def made(front, sync_every=H, fragments=(1,), delay=0):
    choice = OuterStepController(front, sync_every, fragments, delay)
    choice._step_seconds = lambda: 0.1
    return choice


def test_what_was_on_its_way_by_the_plan_before_does_not_count():
    front = Front([0.01] * len(OUTER_METHODS))
    choice = made(front, fragments=fragment_counts(H), delay=None)
    plans = [plan for step in range(1, H) if (plan := choice.after_step(step))]
    assert [plan.fragments for plan in plans] == [1]
    choice.record_travel(3, 0.5)  # the third of four, when the next plan was there already
    choice.begin_schedule()
    compared = front.compared
    choice.record_travel(0, 0.01)
    assert choice.after_step(H) is None
    assert front.compared == compared + 1  # the ranks continue to watch the network


@pytest.mark.parametrize(
    ("sync_every", "fragments", "delay", "expected"),
    [
        (H, (1, 2, 4), None, (4, 20)),
        (H, (1,), None, (1, 0)),  # fragments were given
        (H, (1, 2, 4), 0, (1, 0)),  # a delay was
        (10, (1, 2, 4), None, (1, 0)),  # the delay is longer than an outer step
    ],
)
def test_a_plan_that_was_saved_does_not_take_the_place_of_what_is_given(
    sync_every, fragments, delay, expected
):
    saved = {"way": "maxmin bits=4", "fragments": 4, "delay": 20, "waiting": 0.0}
    choice = made(Front([0.01] * len(OUTER_METHODS)), sync_every, fragments, delay)
    plan = choice.load_state_dict(saved)
    assert (plan.fragments, plan.delay) == expected
    assert choice.method.name == "maxmin bits=4"


def test_a_plan_that_was_carried_over_is_chosen_anew_when_the_network_changes():
    choice = OuterStepController(Front([0.01] * len(OUTER_METHODS)), H, (1,), 0)
    choice.load_state_dict({"way": "maxmin bits=4", "fragments": 1, "delay": 0, "waiting": 0.0})
    for turn in range(1, 40):
        choice.record_travel(0, 0.01 if turn < 20 else 1.0)
        choice.before_outer_step(H * turn, H, 0.1)
    assert "times as long as it did" in str(choice.explanation)


def test_steps_between_rounds_without_turns_are_those_that_were_made():
    front = Front([0.01] * len(OUTER_METHODS))
    choice = made(front)
    asked = []
    front.begin_max = lambda values: asked.append(values) or list(values)
    choice.before_outer_step(5, 5, 0.1)  # early ones, of five steps
    assert len(front.used) == 1
    for step in (10, 15):
        choice.record_travel(0, 0.01)
        choice._step_began -= 1.0
        choice.before_outer_step(step, 5, 0.1)
    assert len(front.used) == 1
    seconds = [mean for _, mean in asked[1:]]
    assert seconds and all(0.2 <= mean < 0.3 for mean in seconds)
    assert first_steps(H) == 5


class Late(Future):
    """Handle that notifies a waiting caller first, and then those that registered a callback."""

    def add_done_callback(self, function):
        super().add_done_callback(lambda future: (time.sleep(0.2), function(future)))


class Sums:
    """Sums of an elastic worker, whose compression is chosen."""

    engine = SimpleNamespace(world_size=2)

    def __init__(self, front, future):
        self.buckets = buckets({"weight": (3, "float32")})
        self._future, self._choice = future, made(front)

    def before_round(self, *about):
        self._choice.before_outer_step(*about)

    def start(self, _):
        future = self._future()
        threading.Timer(0.05, future.set_result, [None]).start()
        return future

    def took(self, seconds):
        assert 0.04 < seconds < 10
        self._choice.record_travel(0, seconds)


class Weights(ArrayWeights):
    """Model with a single weight."""

    def shapes(self):
        return {"weight": (3,)}

    def read(self, name):
        return np.ones(3, np.float32)

    def write(self, name, values):
        pass

    def forget_non_finite(self):
        pass


def test_all_workers_compare_how_long_each_round_was_on_its_way():
    compared = []
    for future in (Future, Late):
        front = Front([0.01] * len(OUTER_METHODS))
        optimizer = SimpleNamespace(attach=lambda _: None, step=lambda _: None)
        rounds = ArrayOuterSteps(Weights(), optimizer, "sgd", Schedule(H))
        sums = Sums(front, future)
        rounds.connect(sums)
        for number in range(3):
            rounds.start(sums, H * (number + 1))
            rounds.complete(sums)
        compared.append(front.compared)
    assert compared[0] == compared[1] == 3  # one is that of the first choice
