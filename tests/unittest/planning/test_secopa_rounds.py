"""Choice of DiLoCo's methods with known times."""

from __future__ import annotations

import pytest

from hipress.autotune.measurement import measure_alone
from hipress.autotune.outer_steps import (
    choose_fragments,
    first_steps,
    fragment_counts,
    least_lossy_method,
    shortest_delay,
    waiting,
)

STEP, H = 0.1, 30


def test_who_waits_how_long():
    assert waiting([0.3], STEP, H, 0) == pytest.approx(0.3 / 3.3)
    assert waiting([0.3, 0.1], STEP, H, 0) == pytest.approx(0.4 / 3.4)
    assert waiting([0.3], STEP, H, 4) == 0  # 0.375 s while four steps are made
    assert waiting([0.4], STEP, H, 4) == pytest.approx(0.1 / 3.1)
    # A synchronization that takes longer than an outer step does not fit in any delay.
    assert waiting([1.0] * 4, STEP, H, 29) == pytest.approx(2.0 / 5.0)


def test_gentle_where_nobody_waits_and_fast_elsewhere():
    seconds = [0.02, 0.015, 0.01]
    assert least_lossy_method([waiting([s], STEP, H, 0) for s in seconds], seconds) == 0
    seconds = [4.0, 0.2, 0.02, 0.01]
    assert least_lossy_method([waiting([s], STEP, H, 0) for s in seconds], seconds) == 2
    seconds = [4.0, 0.52, 0.5]
    assert least_lossy_method([waiting([s], STEP, H, 0) for s in seconds], seconds) == 1


def test_delay_is_as_short_as_can_be():
    assert shortest_delay([0.01], STEP, H) == 0
    assert shortest_delay([0.07], STEP, H) == 1
    assert shortest_delay([0.25], STEP, H) == 3
    assert shortest_delay([0.07] * 4, STEP, H) == 1
    assert shortest_delay([40.0], STEP, H) == 0  # 93% of the time, by any delay
    assert shortest_delay([40.0], STEP, 1) == 0


def test_a_model_is_cut_until_the_delay_is_short():
    measured = []

    def seconds(number):
        measured.append(number)
        return [0.02 + 0.6 / number] * number

    numbers = fragment_counts(H)
    assert numbers == [1, 2, 4]
    assert choose_fragments(seconds, numbers, None, STEP, H) == (4, 3, 0.0)
    assert measured == numbers
    assert choose_fragments(seconds, numbers, 4, STEP, H)[:2] == (2, 4)
    assert choose_fragments(seconds, numbers, 1, STEP, H)[:2] == (4, 1)  # not enough, but most
    measured.clear()
    assert choose_fragments(lambda n: seconds(n)[:1] * n, numbers, None, 1.0, H)[:2] == (1, 1)
    assert measured == [1]
    assert [fragment_counts(n) for n in (100, 8, 1)] == [[1, 2, 4, 8], [1, 2, 4], [1]]
    for every in range(1, 200):  # no fragment is sent before the choice
        assert every // fragment_counts(every)[-1] >= first_steps(every)


def test_round_trips_are_counted_once():
    def measure(method_name, size):
        return (0.1, 0.3)[method_name] + size * (1e-8, 1e-6)[method_name], size

    few, many = (
        measure_alone(
            lambda size, method_name=method_name: measure(method_name, size), 10_000_000, 1 << 23
        )
        for method_name in range(2)
    )
    assert few.seconds == pytest.approx(0.2) and many.seconds == pytest.approx(10.3)
    assert few.elements == 1 << 23 and many.elements == 1 << 18  # who sends less gets more
    slow = measure_alone(lambda size: (size * 1e-3, size), 10_000_000, 1 << 23)
    assert slow.seconds == pytest.approx(10_000) and slow.elements == 1 << 18
