"""Detection of another network by the times of training's own messages."""

from __future__ import annotations

import json
import random

import pytest

from hipress.autotune.network_watch import BLOCK_STEPS, MAX_PATIENCE, NetworkWatch


def steps_until_noticed(watch, *phases):
    """Feed steps of so many seconds for so many steps. Return the step in which another network was
    noticed, counted from the last phase's begin, and the ratio."""
    for last, (seconds, count) in enumerate(phases, 1 - len(phases)):
        for step in range(1, count + 1):
            median = watch.add(seconds() if callable(seconds) else seconds)
            ratio = None if median is None else watch.end_block(median)
            if ratio is not None:
                assert not last, f"noticed in step {step} of phase {last}"
                return step, ratio
    return None, None


@pytest.mark.parametrize("factor", [10, 0.1, 3.5])
@pytest.mark.parametrize("before", [40, 43, 1001])
def test_another_network_is_noticed_within_20_steps(factor, before):
    step, ratio = steps_until_noticed(NetworkWatch(), (0.1, before), (0.1 * factor, 20))
    assert step is not None and ratio == pytest.approx(factor)


@pytest.mark.parametrize("factor", [2.5, 0.4])
def test_a_smaller_change_must_last(factor):
    short = [(0.1, 40), (0.1 * factor, 3 * BLOCK_STEPS), (0.1, 40)]
    assert steps_until_noticed(NetworkWatch(), *short) == (None, None)
    step, ratio = steps_until_noticed(NetworkWatch(), (0.1, 43), (0.1 * factor, 25))
    assert step > 15 and ratio == pytest.approx(factor)


@pytest.mark.parametrize("busy", [2.5, 6.0])
@pytest.mark.parametrize("stays", [True, False])
def test_busy_processors_have_all_measured_once(busy, stays):
    """Temporarily busy processors cause one measurement. The same choice is right at both times, so
    neither is reported again; but a network that is tenfold slower or faster still is."""
    watch = NetworkWatch()
    assert steps_until_noticed(watch, (0.1, 40), (0.1 * busy, 25))[0]
    watch.begin(changed=False)
    first = 0.1 * busy if stays else 0.1
    moderate = 0.1 * min(busy, 2.5)
    later = [(first, 60), *[(moderate, 100), (0.1 * busy / 3.0, 100)] * 20]
    assert steps_until_noticed(watch, *later) == (None, None)
    for factor in (10, 0.1):
        again = NetworkWatch()
        again.load_state_dict(json.loads(json.dumps(watch.state_dict())))
        assert steps_until_noticed(again, (moderate * factor, 20))[0]
    watch.begin(changed=True)
    assert steps_until_noticed(watch, (0.1, 40), (0.25, 25))[0]


def test_noise_and_single_slow_steps_are_not_another_network():
    noise = random.Random(1)

    def noisy():
        return 0.1 * noise.uniform(0.7, 1.4) * (20 if noise.random() < 0.1 else 1)

    assert steps_until_noticed(NetworkWatch(), (noisy, 2000)) == (None, None)
    one_block = [(0.1, 40), (1.0, BLOCK_STEPS), (0.1, 40)]
    assert steps_until_noticed(NetworkWatch(), *one_block) == (None, None)


def test_after_a_false_alarm_it_waits_longer():
    watch, waits = NetworkWatch(), []
    for _ in range(9):
        count = 0
        while True:
            count += 1
            median = watch.add(0.1 if count <= 3 * BLOCK_STEPS else 1.0)
            if median is not None and watch.end_block(median) is not None:
                break
        waits.append(count // BLOCK_STEPS)
        watch.begin(changed=False)
    assert waits == [5, 9, 17, 33, 65, 129, 257, 513, 513] and MAX_PATIENCE == 512
    watch.begin(changed=True)
    assert steps_until_noticed(watch, (0.1, 30), (1.0, 20))[0]


def test_two_blocks_that_disagree_start_no_measuring():
    watch = NetworkWatch()
    found = [watch.end_block(seconds) for seconds in [1.0] * 6 + [9.0, 0.9, 9.0, 1.1, 0.1, 1.0]]
    assert set(found) == {None}


def test_milliseconds_are_not_worth_measuring_for():
    assert steps_until_noticed(NetworkWatch(), (1e-3, 40), (5e-3, 100)) == (None, None)
    assert steps_until_noticed(NetworkWatch(), (1e-3, 40), (10e-3, 20))[0]
