"""Analysis of logs by tests/nightly/chaos_elastic.py: what they say about a fault."""

from __future__ import annotations

import json
import sys

from harness import ROOT

sys.path.insert(0, str(ROOT / "tests" / "nightly"))
import elastic_log


def logs(tmp_path, slots) -> elastic_log.Logs:
    """Write logs of (time, pid, epoch, step, size, digest) of each slot's steps; step None: a
    start."""
    names = ("time", "pid", "epoch", "step", "size", "digest")
    for slot, rows in enumerate(slots):
        with open(tmp_path / f"worker-{slot}.jsonl", "a") as file:
            for row in rows:
                event = dict(zip(names, row), event="start" if row[3] is None else "step")
                file.write(json.dumps(event) + "\n")
    found = elastic_log.Logs(tmp_path, len(slots))
    found.read()
    return found


def test_a_kill_is_measured(tmp_path):
    survivor = [
        (9.0, 1, 1, 5, 2, "a"),
        (10.1, 1, 1, 6, 2, "b"),
        (12.0, 1, 2, 6, 1, "c"),
        (14.5, 1, 3, 7, 2, "d"),
    ]
    victim = [(9.0, 2, 1, 5, 2, "a"), (13.0, 3, 0, None, 0, ""), (14.5, 3, 3, 7, 2, "d")]
    found = logs(tmp_path, [survivor, victim])
    fault = elastic_log.Fault("kill", [1], 10.0, 10.0, pids={0: 1, 1: 2}, epochs={0: 1})
    assert fault.survivors() == [0]
    assert elastic_log.first_step_after(found, fault, 0)["time"] == 12.0
    assert elastic_log.steps_done_again(found, fault, 0) == 1
    assert elastic_log.rejoining(found, 1, old=2) == 1.5
    assert elastic_log.rejoining(found, 1, old=3) is None
    assert elastic_log.trains_whole(found, 12.0) and not elastic_log.trains_whole(found, 14.5)
    assert elastic_log.different_weights(found.events) == (2, [])


def test_after_a_pause_the_same_view_may_go_on(tmp_path):
    found = logs(
        tmp_path, [[(9.0, 1, 1, 5, 2, "a"), (10.1, 1, 1, 6, 2, "b"), (13.2, 1, 1, 7, 2, "c")]]
    )
    fault = elastic_log.Fault("pause", [1], 10.0, 13.0, pids={0: 1, 1: 2}, epochs={0: 1})
    assert elastic_log.first_step_after(found, fault, 0)["time"] == 13.2
    assert elastic_log.steps_done_again(found, fault, 0) == 0
    fault.kind = "kill"
    assert elastic_log.first_step_after(found, fault, 0) is None


def test_different_weights_are_found(tmp_path):
    found = logs(
        tmp_path,
        [
            [(1.0, 1, 1, 5, 2, "a"), (2.0, 1, 2, 5, 2, "c")],
            [(1.0, 2, 1, 5, 2, "b"), (2.0, 2, 2, 5, 2, "c")],
        ],
    )
    compared, wrong = elastic_log.different_weights(found.events)
    assert compared == 2
    assert wrong == ["after step 5 of epoch 1 the weights are different: {0: 'a', 1: 'b'}"]


def _steps(slot, rank, epoch, times):
    """Return the events of a worker's steps in one view."""
    return [
        {
            "event": "step",
            "epoch": epoch,
            "step": 5 + at,
            "rank": rank,
            "time": time,
            "digest": f"{epoch}.{at}",
        }
        for at, time in enumerate(times)
    ]


def test_both_halves_of_a_cut_network_are_two_lineages():
    together = [_steps(slot, slot, 1, [1.0, 2.0]) for slot in range(4)]
    halves = [_steps(slot, slot % 2, 2, [4.0, 5.0]) for slot in range(4)]
    wrong = elastic_log.two_lineages([a + b for a, b in zip(together, halves)])
    assert wrong == [
        f"workers [{rank}, {rank + 2}] have both been rank {rank} of epoch 2" for rank in (0, 1)
    ]


def test_half_that_stays_behind_and_trains_is_a_second_lineage():
    goes_on = _steps(0, 0, 1, [1.0, 2.0]) + _steps(0, 0, 2, [4.0, 5.0])
    stays = _steps(1, 1, 1, [1.0, 2.0, 4.5, 5.5])
    assert elastic_log.two_lineages([goes_on, stays]) == [
        "worker 1 has completed 2 steps of epoch 1 after others had trained in a later one"
    ]
    woken = _steps(1, 1, 1, [1.0, 2.0, 4.5]) + _steps(1, 1, 3, [8.0])
    assert elastic_log.two_lineages([goes_on, woken]) == []


def test_steps_without_digests_are_not_counted_as_compared(tmp_path):
    found = logs(
        tmp_path,
        [
            [(1.0, 1, 1, 5, 2, None), (2.0, 1, 1, 6, 2, "c")],
            [(1.0, 2, 1, 5, 2, None), (2.0, 2, 1, 6, 2, "c")],
        ],
    )
    assert elastic_log.different_weights(found.events) == (1, [])


def test_torn_lines_are_counted_and_what_follows_is_read(tmp_path):
    whole = json.dumps({"time": 2.0, "pid": 2, "event": "start"})
    path = tmp_path / "worker-0.jsonl"
    path.write_text('{"time": 1.0, "pi' + whole + "\n" + '{"time": 3.0')
    found = elastic_log.Logs(tmp_path, 1)
    found.read()
    assert found.events[0] == [json.loads(whole)] and found.torn == 1
    with open(path, "a") as file:
        file.write(', "pid": 2, "event": "end"}\n')
    found.read()
    assert [event["event"] for event in found.events[0]] == ["start", "end"]
