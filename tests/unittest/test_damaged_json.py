"""A profile or timeline with any one value damaged is refused in a sentence, or still read."""

from __future__ import annotations

import copy
import json

import pytest

from hipress import report
from hipress.secopa import profiles, sosp21

CURVE = {"w": 1e-9, "b": 1e-5, "o": 1e-5}
CODEC = {"bytes_per_element": 1.0, "fixed_bytes": 64,
         "encode": CURVE, "decode": CURVE, "merge": CURVE, "add": CURVE}  # fmt: skip
MEASURED = {
    "format": profiles.FORMAT, "version": profiles.VERSION, "name": "here", "nodes": 2,
    "threads": 1, "task": 1e-6, "shared_host": True,
    "network": {"send": CURVE, "message": 1e-6, "handling": 1e-6, "part": 1e-6},
    "codecs": {"none": CODEC, "tbq": CODEC},
}  # fmt: skip
PUBLISHED = json.loads((sosp21.DATA / "sosp21.json").read_text())
TIMELINE = {
    "traceEvents": [
        {"ph": "X", "name": "gradient", "pid": 1, "ts": 1.0, "dur": 2.0,
         "args": {"node": "worker 0", "key": "w", "iteration": 1, "bytes": 4, "elements": 1}},
    ],
    "otherData": {"recorded": True, "clocks": {"worker 0": {"round_trip_us": 1.0}}},
}  # fmt: skip
DAMAGE = [None, "x", [], {}, -1, 1e400, float("nan"), [[1]], True]


def leaves(values, path=()):
    """The path of every value inside a JSON object, containers included."""
    if path:
        yield path
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for name, value in items:
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def damaged(values):
    """Copies of ``values``, each with one value lost or replaced."""
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
