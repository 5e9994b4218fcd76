"""Changes of a training's method, with a front end that only reports what it receives."""

import json

import numpy as np
import pytest

from hipress.autotune.choice import MethodChoice, choose
from hipress.autotune.controller import TuningController
from hipress.autotune.measurement import Measurement
from hipress.autotune.methods import BF16_HOOK, POWERSGD, candidates
from hipress.autotune.quality_guard import EVERY, GradientStatistics
from hipress.autotune.steps import StepDetector

CANDIDATES = candidates(is_16_bit=False, feedback=True, without=[BF16_HOOK, POWERSGD])


class Front:
    """Front end that is the only rank of a job."""

    rank, log_rank, keeps_error_feedback, compares_results = 1, 1, True, False
    statistics = GradientStatistics

    def __init__(self, allowed=True):
        self.step, self.allowed, self.used, self.reductions = 0, allowed, [], self

    def begin_max(self, values):
        return list(values)

    def end_max(self, begun):
        return begun

    def max(self, *values):
        return self.end_max(self.begin_max(values))

    def use(self, method_name):
        self.used.append(method_name.name)

    def residual_norm(self):
        return 0.0

    def allows_feedback(self):
        return self.allowed

    def bytes_sent(self):
        return 0


class Clock:
    """Clock whose seconds pass on command."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


def choice_of(ms, feedback=True):
    measured = [
        Measurement(ms.get(method_name.name, 1000.0) / 1e3, 1000) for method_name in CANDIDATES
    ]
    return MethodChoice(list(CANDIDATES), feedback, 1000, lambda: measured, measured)


def steps(follower, front, clock, count, seconds):
    """Return the methods of so many steps, of which one with a method takes ``seconds(way)``."""
    found = []
    for _ in range(count):
        method_name = follower.begin_step()
        found.append(method_name.name)
        clock.now += seconds(method_name.name)
        follower.seconds.append(seconds(method_name.name))
        front.step += 1
    return found


def test_a_trial_does_not_choose_what_an_optimizer_that_comes_later_does_not_bear(monkeypatch):
    """Trial result is not chosen when a later optimizer does not support it."""
    clock, front = Clock(monkeypatch), Front()
    choice = choice_of({"maxminef bits=2": 10.0, "maxmin bits=5": 10.5})
    follower = TuningController(choice, front, 4000.0)
    assert choice.method.name == "maxmin bits=5" and follower.is_trying
    ms = {"maxminef bits=2": 0.01, "maxmin bits=5": 0.02}
    steps(follower, front, clock, 3, lambda method_name: ms.get(method_name, 1.0))
    front.allowed = False
    found = steps(follower, front, clock, 200, lambda method_name: ms.get(method_name, 1.0))
    assert follower.is_settled and set(found[5:]) == {"maxmin bits=5"}


def test_seconds_count_for_the_way_that_took_them(monkeypatch):
    """Seconds count for the method that took them, also when it changes while the previous one's
    seconds are compared."""
    clock, front = Clock(monkeypatch), Front()
    choice = choice_of({"maxmin bits=5": 10.0}, feedback=False)
    follower = TuningController(choice, front, 4000.0, tries=False)
    coarse, row, figures = choice.method, choice.explanation.rows, follower._numbers_to_compare

    def softening():
        if follower._reduction is not None and choice.method is coarse:
            choice.use_less_lossy("a test", 0.0, front.step)
        return figures()

    monkeypatch.setattr(follower, "_numbers_to_compare", softening)
    while choice.method is coarse:
        steps(follower, front, clock, 1, lambda _: 0.1)
    steps(follower, front, clock, 2, lambda _: 7.0)
    assert not next(each for each in row if each.chosen).step_ms
    steps(follower, front, clock, 40, lambda _: 7.0)
    assert next(each for each in row if each.chosen).step_ms == pytest.approx(7000)


def test_what_was_seen_before_a_load_counts_no_more():
    """Observations before a load do not count: an earlier step is loaded, and its gradients are
    observed soon."""
    front = Front(allowed=False)
    choice = choice_of({"maxmin bits=5": 10.0}, False)
    follower = TuningController(choice, front, 4000.0, tries=False)

    def looked_at(count):
        found = []
        for _ in range(count):
            follower.begin_step()
            observer = follower.observer
            if observer is not None:
                observer.before([("g", [np.ones(2)])])
                found.append(front.step)
            front.step += 1
        return found

    assert looked_at(2 * EVERY + 10)
    front.step = 10
    follower.resume(has_residuals=False)
    assert looked_at(20)


@pytest.mark.parametrize(
    ("pushes", "begins"),
    [
        ("abcabcabc", [3, 6]),
        ("abcabcbcbc", [3, 6, 8]),  # a is frozen: b and c are a step
        ("xabcabc", [4]),  # x comes once
        ("abbcabbc", [2, 5, 6]),  # b twice
    ],
)
def test_where_steps_begin(pushes, begins):
    found = StepDetector()
    assert not found.has_begun
    assert [i for i, key in enumerate(pushes) if found.begins([ord(key)])] == begins
    assert found.has_begun


def test_nothing_may_be_compressed():
    class Alone:
        rank, num_ranks, elements, what, max_error = 1, 2, 0, "gradients", None

    choice = choose(Alone(), list(CANDIDATES), None, 0, 0)
    assert choice.explanation.sentence == "auto: uncompressed, for no gradient may be compressed"


def lines_of(monkeypatch, tmp_path, ms, sends, tries=True):
    """Return the lines of 400 steps, of which one with a method takes 20 ms and ``ms``, and sends
    bytes."""
    monkeypatch.setenv("HIPRESS_EXPLAIN", str(tmp_path / "job.json"))
    monkeypatch.setattr("hipress.autotune.journal.EVERY", 20)
    clock, front, sent = Clock(monkeypatch), Front(allowed=False), [10_000]
    front.log_rank, front.keeps_error_feedback, front.bytes_sent = 0, False, lambda: sent[0]
    follower = TuningController(choice_of(ms, False), front, 4000.0, tries)

    def seconds(method_name):
        sent[0] += sends(method_name) // 2  # requested twice in a step
        return (20.0 + ms[method_name]) / 1e3  # some of it computing

    for _ in range(400):
        steps(follower, front, clock, 1, seconds)
        follower.seconds[:] = [0.01]  # on one network
    text = (tmp_path / "job.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_lines_count_bytes_of_the_way_that_runs(monkeypatch, tmp_path):
    """Logged bytes are those of the running method."""
    ms = {"maxmin bits=5": 50.0, "uncompressed": 60.0}
    found = lines_of(
        monkeypatch, tmp_path, ms, lambda method_name: 500 * (method_name == "maxmin bits=5")
    )
    assert {line["method"] for line in found} == {"maxmin bits=5"} and len(found) >= 15
    assert {line["bytes"] for line in found} <= {500, None} and found[-1]["ratio"] == 8.0
    assert [line["step"] for line in found] == [*range(20, 400, 20)]


def test_lines_count_what_an_elastic_job_sends_uncompressed(monkeypatch, tmp_path):
    found = lines_of(monkeypatch, tmp_path, {"uncompressed": 1.0}, lambda _: 4000, tries=False)
    assert {(line["bytes"], line["ratio"]) for line in found} == {(4000, 1.0)}
