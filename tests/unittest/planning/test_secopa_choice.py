"""Choice among methods to synchronize gradients, with given times."""

from __future__ import annotations

import math

import pytest

from hipress.autotune.measurement import (
    BUDGET_SECONDS,
    compare_methods,
    least_lossy,
)
from hipress.autotune.trial import (
    BLOCK_STEPS,
    SETTLING_STEPS,
    STEP_BLOCKS,
    TRIAL_SECONDS,
    StepTrial,
)


def test_of_what_is_about_as_fast_the_gentlest_is_chosen():
    assert least_lossy([10.0, 11.0, 10.5]) == 0
    assert least_lossy([11.5, 11.0, 10.0]) == 1
    assert least_lossy([12.0, 11.5, 10.0]) == 2
    assert least_lossy([3.0]) == 0
    assert least_lossy([0.3, 0.2, 0.1], slack=0.2) == 0
    assert least_lossy([0.3, 0.2, 0.05], slack=0.2) == 1


class Network:
    """Methods that take so many seconds for a message, and for each element."""

    def __init__(self, *methods):
        self.methods, self.asked, self.spent = methods, [], 0.0

    def measure(self, method, size):
        self.asked.append((method, size))
        seconds = self.methods[method][0] + size * self.methods[method][1]
        self.spent += seconds
        return seconds, size


def test_samples_grow_to_the_model_where_there_is_time():
    fast = Network((1e-4, 4e-9), (2e-3, 1e-9))
    found = compare_methods(fast.measure, 2, 5_000_000, 1 << 23)
    assert [each.elements for each in found] == [5_000_000] * 2
    assert found[0].seconds == pytest.approx(0.0201) and found[1].seconds == pytest.approx(0.007)
    assert [size for method, size in fast.asked if method][:5] == [1 << 16] * 4 + [1 << 18]


def test_on_a_slow_network_only_what_is_fast_gets_large_samples():
    slow = Network((1e-3, 5e-7), (1e-3, 1.5e-7), (1e-3, 1.25e-7))
    found = compare_methods(slow.measure, 3, 20_000_000, 1 << 23)
    assert [each.elements for each in found] == [1 << 18, 1 << 20, 1 << 20]
    assert found[0].seconds == pytest.approx(10, rel=0.1)  # of all the model's gradients
    assert found[2].seconds == pytest.approx(2.5, rel=0.1)
    assert slow.spent < BUDGET_SECONDS


def test_what_a_message_takes_counts_once():
    """The time of a message counts once: a method with long round trips does not take the sum of
    its consecutive samples."""
    network = Network((1e-3, 5e-8), (4e-2, 1e-8))
    found = compare_methods(network.measure, 2, 200_000_000, 1 << 20)
    assert found[0].seconds == pytest.approx(10, rel=0.01)
    assert found[1].seconds == pytest.approx(2.04, rel=0.01)


def test_what_is_beaten_gets_no_larger_sample_although_there_is_time():
    fast = Network((1e-4, 6e-9), (1e-4, 1e-9), (1e-4, 1.2e-9))
    found = compare_methods(fast.measure, 3, 5_000_000, 1 << 23)
    assert [each.elements for each in found] == [1 << 18, 5_000_000, 5_000_000]
    assert [each.left_out for each in found] == [True, False, False]
    assert found[1].seconds == pytest.approx(0.0051)


def test_what_may_not_be_allowed_beats_no_other():
    def measured(feedback):
        network = Network((1e-4, 9e-9), (1e-4, 6e-9), (1e-4, 1e-9), (1e-4, 9e-8))
        found = compare_methods(network.measure, 4, 5_000_000, 1 << 23, feedback=feedback)
        return [each.left_out for each in found]

    assert measured([2, 3]) == [False, False, False, True]
    # The fastest one alone needs no further sample.
    assert measured([]) == [False, False, False, False]


def test_what_may_not_be_allowed_leaves_no_other_out():
    slow = Network((1e-4, 2e-6), (1e-4, 1e-7), (1e-4, 1.1e-7))
    found = compare_methods(slow.measure, 3, 5_000_000, 1 << 23, feedback=[1, 2])
    assert found[0].elements < found[1].elements == found[2].elements
    assert not any(each.left_out for each in found)


def test_of_what_there_is_no_time_for_all_the_promising_get_the_next_sample():
    slow = Network((1e-3, 5.5e-7), (1e-3, 5e-7), (1e-3, 2e-7))
    found = compare_methods(slow.measure, 3, 200_000_000, 1 << 23)
    assert [each.elements for each in found] == [1 << 18, 1 << 20, 1 << 20]
    assert slow.spent < BUDGET_SECONDS


def test_what_had_fewer_samples_is_chosen_only_if_nothing_else_may_be():
    from hipress.autotune.choice import MethodChoice
    from hipress.autotune.measurement import Measurement
    from hipress.autotune.methods import BF16, MAXMIN8, POWERSGD, UNCOMPRESSED

    methods = [UNCOMPRESSED, BF16, MAXMIN8, POWERSGD]
    found = [
        Measurement(0.9, 9, True),
        Measurement(0.1, 9, True),
        Measurement(0.5, 99),
        Measurement(0.2, 99),
    ]
    choice = MethodChoice(methods, False, 99, lambda: found, found)
    assert choice.method is MAXMIN8 and "maxmin bits=8, the fastest:" in choice.explanation.sentence
    assert [row.note for row in choice.explanation.rows] == [
        "slower in smaller samples",
        "slower in smaller samples",
        "",
        "with SGD only",
    ]
    assert "the optimizer is SGD, powersgd rank=4, the fastest" in choice.set_feedback(True, 1)
    again = MethodChoice(methods, True, 99, lambda: found)
    again.load_state_dict(choice.state_dict())
    assert again.set_feedback(False, 2) and again.method is MAXMIN8
    few = [
        Measurement(0.9, 9, True),
        Measurement(0.7, 9, True),
        Measurement(0.5, 9, True),
        Measurement(0.2, 9),
    ]
    alone = MethodChoice(methods, False, 99, lambda: few, few)
    assert alone.method is MAXMIN8 and "the fastest" in alone.explanation.sentence


def test_what_is_too_coarse_is_left_for_what_had_all_samples():
    """A method that is too coarse is compared with methods that had all samples. A smaller sample
    may flatter: 8 bits took 5 ms in one, 16 bits 8 ms of all gradients."""
    from hipress.autotune.choice import MethodChoice
    from hipress.autotune.measurement import Measurement
    from hipress.autotune.methods import BF16, METHODS, UNCOMPRESSED

    methods = [
        UNCOMPRESSED,
        BF16,
        *(method for method in METHODS if method.type == "maxmin"),
    ]
    found = [
        Measurement(0.020, 100),
        Measurement(0.008, 100),
        Measurement(0.005, 10, left_out=True),
        Measurement(0.007, 100),
        Measurement(0.002, 100),
    ]
    choice = MethodChoice(methods, False, 100, lambda: found, found)
    assert choice.method.params == {"bits": 5}
    sentence = choice.use_less_lossy("is too coarse", 30.0, 7)
    assert choice.method is BF16, sentence


def test_where_the_first_sample_takes_long_it_is_measured_once():
    slowest = Network((1.0, 1e-4), (1.0, 5e-5))
    found = compare_methods(slowest.measure, 2, 20_000_000, 1 << 23)
    assert slowest.asked == [(0, 1 << 16), (1, 1 << 16)] and len(found) == 2


def trained(gradients, choice, *steps):
    """Return the choice after a trial in which steps with method i take ``steps[i]`` seconds.
    Return also the methods that were tried, in the order of steps."""
    trial, methods = StepTrial(gradients, choice), []
    while not trial.over:
        methods.append(trial.index)
        median = trial.add(steps[trial.index])
        if median is not None:
            trial.end_block(median)
        assert len(methods) < 1000
    return trial.index, methods, trial.seconds


def test_what_cannot_be_as_fast_is_not_tried_in_training():
    method, methods, seconds = trained([2.0, math.inf, 0.1], 2, 9.0, 9.0, 0.5)
    assert method == 2 and set(methods) == {2} and len(methods) < 10 and seconds == {2: 0.5}


def test_computing_that_hides_what_is_sent_makes_a_gentler_way_the_choice():
    method, methods, seconds = trained([0.4, 0.3, 0.1], 2, 0.5, 0.5, 0.5)
    assert method == 0 and set(methods) == {0, 1, 2} and seconds == dict.fromkeys(range(3), 0.5)
    assert trained([0.4, 0.3, 0.1], 2, 0.55, 0.5, 0.5)[0] == 1
    assert trained([0.4, 0.3, 0.1], 2, 0.55, 0.53, 0.5)[0] == 2
    assert trained([math.inf, 0.3, 0.1], 1, 0.1, 0.5, 0.45)[0] == 2  # HiPress's, then DDP's own


def test_what_is_hopeless_in_training_is_soon_left_out():
    _, methods, seconds = trained([0.4, 0.1], 1, 0.9, 0.5)
    assert methods.count(0) == 2 * (1 + 4) and seconds == {0: 0.9, 1: 0.5}


def test_a_trial_ends_after_some_seconds_whatever_steps_take():
    """A trial of alternating methods ends after some seconds regardless of step times; training has
    continued for as long by then."""
    fast, _, _ = trained([0.4, math.inf, 0.1], 2, 0.5, 9.0, 0.5)
    assert fast == 0
    for seconds in (0.1, 1.0, 3.0, 7.0, 20.0):
        gradients = [0.9 * seconds, math.inf, 0.1 * seconds]
        method, methods, found = trained(gradients, 2, 0.9 * seconds, 9.0, seconds)
        of_the_choice = SETTLING_STEPS + BLOCK_STEPS
        turns = methods[of_the_choice:]
        spent = sum(seconds * (0.9 if method == 0 else 1.0) for method in turns)
        assert spent <= TRIAL_SECONDS and (method, bool(turns)) == (
            (2, False) if seconds == 20.0 else (0, True)
        ), (seconds, methods)
        assert (0 in found) == bool(turns)


def test_a_trial_of_a_way_that_takes_far_longer_than_thought_ends_in_a_round():
    trial = StepTrial([0.5, 0.1, 0.1], 2)
    steps, spent = [40.0, 0.3, 1.0], 0.0
    while not trial.over:
        spent += steps[trial.index]
        median = trial.add(steps[trial.index])
        if median is not None:
            trial.end_block(median)
    assert trial.was_cut and trial.index == 2 and spent < 210


def test_a_block_counts_as_a_whole_where_steps_overlap():
    """A block counts as a whole where steps overlap. A step returns at once, except where all must
    have finished: that one takes as long as all steps did."""
    trial, edges, waiting, steps = StepTrial([0.4, 0.1], 1, whole=True), 0, 0.0, 0
    while not trial.over:
        seconds = {0: 0.5, 1: 0.6}[trial.index]
        waiting += seconds - 0.01
        edge, taken = trial.is_at_edge, 0.01
        if edge:
            edges, taken, waiting = edges + 1, taken + waiting, 0.0
        steps += 1
        median = trial.add(taken)
        if median is not None:
            assert edge and median == pytest.approx(seconds)
            trial.end_block(median)
    assert trial.index == 0 and edges <= 2 * (1 + 2 * STEP_BLOCKS) < steps
