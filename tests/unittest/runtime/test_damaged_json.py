"""Damaged JSON: a profile, timeline or dump with any one value damaged is read, or refused with a
message."""

from __future__ import annotations

import copy
import json

import pytest

from hipress.diagnostics import debug, debug_report, elastic_job, report
from hipress.planning import profiles, sosp21
from measured_profile import MEASURED

PUBLISHED = json.loads((sosp21.DATA / "sosp21.json").read_text())
TIMELINE = {
    "traceEvents": [
        {
            "ph": "X",
            "name": "gradient",
            "pid": 1,
            "ts": 1.0,
            "dur": 2.0,
            "args": {"node": "worker 0", "key": "w", "iteration": 1, "bytes": 4, "elements": 1},
        },
    ],
    "otherData": {"recorded": True, "clocks": {"worker 0": {"round_trip_us": 1.0}}},
}
COUNTS = [{"node": "worker 1", "messages": 1, "first_hand": True}]
DUMP = {
    "format": debug.FORMAT,
    "version": debug.VERSION,
    "reason": "x",
    "time": 1e9,
    "host": "h",
    "pid": 1,
    "process_nodes": 1,
    "node": "worker 0",
    "workers": 2,
    "servers": 1,
    "ranks": "1,3",
    "job": "127.0.0.1:9",
    "started": True,
    "failure": "f",
    "left": ["worker 2"],
    "dead": [{"node": "worker 1", "what": "w"}],
    "links": [{"node": "worker 1", "silent": 0.5}],
    "calls": [{"kind": "barrier", "about": "workers 1", "seconds": 1.0}],
    "scheduler": {"missing": "", "barriers": [{"about": "workers 1", "missing": ["worker 1"]}]},
    "keys": [
        {
            "key": 1,
            "name": "w",
            "channel": 0,
            "pushes": True,
            "pushed": 2,
            "locked": False,
            "iterations": [
                {
                    "iteration": 2,
                    "seconds": 1.0,
                    "pushed": True,
                    "queued": False,
                    "waits_for": COUNTS,
                    "arriving_from": COUNTS,
                    "sending_to": COUNTS,
                    "running": [{"op": "encode", "partition": 1}],
                }
            ],
        }
    ],
    "fetches": [{"key": 1, "iteration": 2, "seconds": 1.0, "from": ["server 0"]}],
    "events": [[1e9, 1, 2, 0, "send", "done", "worker 1"]],
}
AGENT = {
    "format": debug.FORMAT,
    "version": debug.VERSION,
    "reason": "x",
    "time": 1e9,
    "host": "h",
    "pid": 1,
    "process_nodes": 1,
    "age": 0.1,
    "status": {
        "id": "a",
        "slot": 0,
        "agents": ["h:1", "h:2", "h:3"],
        "min_members": 2,
        "joining": False,
        "epoch": 3,
        "entered": 2,
        "boundary": 9,
        "completed": 7,
        "joined": ["c"],
        "dead": ["b"],
        "members": [
            {"id": "a", "slot": 0, "address": "h:1"},
            {"id": "c", "slot": 2, "address": "h:3"},
        ],
        "departed": [{"slot": 1, "why": "it left"}],
        "joins": [{"id": "d", "slot": 1}],
        "suspects": [{"id": "c", "slot": 2, "silent": 1.5}],
        "waits_for": "it waits for you",
        "calls": [{"about": "here/1", "epoch": 3, "rank": 1, "seconds": 2.0}],
    },
}
DAMAGE = [None, "x", [], {}, -1, 1e400, float("nan"), [[1]], True]


def leaves(values, path=()):
    """Return the path of every value inside a JSON object, containers included."""
    if path:
        yield path
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for name, value in items:
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def damaged(values):
    """Yield copies of ``values``, each with one value lost or replaced."""
    for path in leaves(values):
        for damage in [*DAMAGE, leaves]:
            copied = copy.deepcopy(values)
            place = copied
            for name in path[:-1]:
                place = place[name]
            if damage is leaves:
                del place[path[-1]]
            else:
                place[path[-1]] = damage
            yield path, damage, copied


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("values", [MEASURED, PUBLISHED], ids=["measured", "published"])
def test_a_damaged_profile(values, tmp_path):
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(values))
    profiles.load(file)
    refused = 0
    for path, damage, copied in damaged(values):
        file.write_text(json.dumps(copied))
        try:
            profiles.load(file)
        except profiles.ProfileError as error:
            refused += 1
            assert str(file) in str(error), (path, damage)
    assert refused > 100


def test_a_damaged_timeline(tmp_path):
    file = tmp_path / "timeline.json"
    file.write_text(json.dumps(TIMELINE))
    assert report.summary(report.load(file))
    refused = 0
    for path, damage, copied in damaged(TIMELINE):
        file.write_text(json.dumps(copied))
        try:
            report.summary(report.load(file))
        except report.ReportError as error:
            refused += 1
            assert str(file) in str(error), (path, damage)
    assert refused > 50


@pytest.mark.slow
@pytest.mark.parametrize("values", [DUMP, AGENT], ids=["node", "agent"])
def test_a_damaged_dump(values, tmp_path, capsys):
    file = tmp_path / "dump.json"
    refused = 0
    for path, damage, copied in [((), None, values), *damaged(values)]:
        file.write_text(json.dumps(copied))
        try:
            dump = debug.load(file)
            elastic, others = elastic_job.gather([dump], dump.time)
            for job in elastic:
                debug_report.show_elastic(job, 1e9 + 5, 5, 5)
            for nodes in debug.latest_jobs(others, dump.time):
                debug_report.show(nodes, 1e9 + 5, 5, 5)
        except debug.DebugError as error:
            refused += 1
            assert path and str(file) in str(error), (path, damage)
            assert len(str(error).splitlines()) == 1
    assert refused > 200
