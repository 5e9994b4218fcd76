"""DiLoCo in elastic jobs whose synchronizations are in transit during the next steps."""

import pytest

from elastic_rounds import contributions, end, events, silence, stop, weights_are_equal
from harness.processes import wait_until
from test_torch_elastic_diloco import Alone, H, job  # noqa: F401 (job is a fixture)

DELAY = 2


def delayed(alpha=0.0):
    return {"fragment_sync_delay": DELAY, "fragment_update_alpha": alpha}


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_weights_are_those_of_one_process(job, alpha):  # noqa: F811
    with job(2, 5 * H + DELAY, more=delayed(alpha)) as running:
        digests = end(running, range(2))
        assert {e["step"] % H for e in events(running, "round")} == {DELAY}
    reference = Alone(DELAY, alpha)
    assert digests[:5] == [reference.round([(0, 0), (1, 0)]) for _ in range(5)]
    assert len(digests) == (6 if alpha else 5)  # steps trained during the transfer are left, or not


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_death_while_the_others_train_on_costs_them_nothing(job, alpha):  # noqa: F811
    with job(
        4, 5 * H + DELAY, faults={1: ("die", 3), 3: ("die", 3)}, more=delayed(alpha)
    ) as running:
        digests = end(running, (0, 2))
        workers = contributions(running)[:5]
        for slot in (0, 2):
            steps = [e["step"] for e in events(running, "step", [slot])]
            assert steps == list(range(1, 5 * H + DELAY + 1))
    assert [[slot for slot, _ in each] for each in workers] == [[0, 1, 2, 3]] * 2 + [[0, 2]] * 3
    reference = Alone(DELAY, alpha)
    expected = [reference.round(each, again=i == 2) for i, each in enumerate(workers)]
    assert digests[:5] == expected


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize(
    "faults",
    [{1: ("refuse", 3)}, {0: ("late", 3), 1: ("fail", 3)}],
    ids=["one cannot begin", "one comes late for the result, another one has failed"],
)
def test_all_fail_at_the_same_step(job, faults, alpha):  # noqa: F811
    with job(2, 5 * H + DELAY, faults=faults, more=delayed(alpha)) as running:
        digests = end(running, range(2))
        assert not [e for e in events(running, "copied") if e["step"]]
    reference = Alone(DELAY, alpha)
    assert digests[:5] == [reference.round([(0, 0), (1, 0)], again=i == 2) for i in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "last"),
    [
        ({2: ("lack", 3)}, [(0, 0), (1, 0), (2, 1), (3, 0)]),  # as a new one, with no steps
        ({1: ("miss", 4), 2: ("die", 4), 3: ("die", 4)}, [(0, 0), (1, 0)]),
    ],
    ids=["one has copied the last result", "two die"],
)
def test_what_is_left_at_the_end_counts(job, faults, last):  # noqa: F811
    """Steps that some workers made while the last result was in transit count at the end."""
    with job(4, 3 * H + DELAY, faults=faults, more=delayed(0.5)) as running:
        digests = end(running, [slot for slot, _ in last])
    reference = Alone(DELAY, 0.5)
    expected = [reference.round([(slot, 0) for slot in range(4)]) for _ in range(3)]
    assert digests == [*expected, reference.round(last, DELAY)]


@pytest.mark.slow
def test_workers_join_and_are_silent(job):  # noqa: F811
    with job(3, 1_000_000, compression="sparseloco", more=delayed(0.5)) as running:
        wait_until(lambda: running.step(0) > 2 * H, 120, "two rounds")
        silence(running, 2, 2)
        running.kill(1)
        wait_until(lambda: events(running, "round", [0])[-1]["trained"] == 2, 120, "a round of two")
        running.restart(1)
        wait_until(lambda: events(running, "round", [0])[-1]["trained"] == 3, 120, "one of three")
        stop(running)
        weights_are_equal(running)


@pytest.mark.slow
def test_all_know_what_was_asked_for(job):  # noqa: F811
    with job(2, 1_000_000, min_workers=1, more=delayed()) as running:
        wait_until(lambda: running.step(0) > H, 120, "a round")
        running.kill(1)
        other = repr([*eval(running.command[-1])[:-1], {}])
        running.processes[running.present(1)].wait(120)
        running.restart(1, [*running.command[:-1], other])
        process = running.processes[running.present(1)]
        wait_until(lambda: process.poll() is not None, 120, "its end")
        last = running.output(running.present(1)).strip().splitlines()[-1]
        assert "differ in fragment_sync_delay: '0' and '2'" in last
