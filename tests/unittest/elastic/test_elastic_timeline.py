"""Timelines of an elastic job: a file for each view, none lost, and the report tells them apart."""

from __future__ import annotations

import json
import re

import pytest

from elastic_training import command
from harness.elastic import ElasticJob
from harness.processes import wait_until
from hipress.diagnostics import report
from test_debug import hipress

pytest.importorskip("torch")


def steps(job, slot, epoch):
    """Return how many steps a slot has completed in a view."""
    return sum(1 for e in job.journal(slot) if e["event"] == "step" and e["epoch"] == epoch)


@pytest.mark.slow
def test_views_have_files_of_their_own_and_a_failure_loses_none(tmp_path):
    path = tmp_path / "job.json"
    with ElasticJob(command(), 3, env={"HIPRESS_TIMELINE": str(path)}) as job:
        wait_until(lambda: job.step(1) >= 20, 120, "20 steps")
        job.kill(0)  # which was to write the file
        wait_until(lambda: steps(job, 1, 2) >= 10, 120, "10 steps of view 2")
        job.restart(0)
        wait_until(lambda: steps(job, 1, 3) >= 10, 90, "10 steps of view 3")
        job.kill(2)
        wait_until(lambda: (tmp_path / "job-view3-rank0.json").exists(), 30, "a part of view 3")
        wait_until(lambda: (tmp_path / "job-view3-rank2.json").exists(), 30, "another one")
        done_in = {epoch: steps(job, 1, epoch) for epoch in (1, 2, 3)}
    names = {file.name for file in tmp_path.glob("job*.json")}
    # Views that end by a death are written by the survivors, as rank 0 cannot collect them.
    assert {"job-view1-rank1.json", "job-view1-rank2.json", "job-view2.json"} <= names
    assert "job-view1.json" not in names and "job.json" not in names, names
    views = report.load_all(path)
    assert [view.view for view in views][:3] == [1, 2, 3]
    nodes = [{span.node for span in view.spans} for view in views[:3]]
    assert nodes == [{"worker 1", "worker 2"}, {"worker 0", "worker 1"}, {"worker 0", "worker 2"}]
    for view in views[:3]:
        # The step that failed may have come to its end on some.
        found = len(view.steps())
        assert done_in[view.view] <= found <= done_in[view.view] + 1, (view.view, done_in)
    done = hipress("report", "--no-picture", path)
    assert done.returncode == 0, done.stderr
    heads = re.findall(r"^view (\d), \S+( and 1 more)?: recorded, 2 nodes", done.stdout, re.M)
    assert heads[:3] == [("1", " and 1 more"), ("2", ""), ("3", " and 1 more")], done.stdout


def timeline(path, job, begin_us, node, spans, view=2):
    """Write a file of one node with gradients (begin, duration) in microseconds."""
    rows = [
        {
            "ph": "X",
            "name": "gradient",
            "pid": 1,
            "ts": ts,
            "dur": dur,
            "args": {"node": node, "key": "w", "iteration": i + 1, "bytes": 4, "elements": 1},
        }
        for i, (ts, dur) in enumerate(spans)
    ]
    other = {
        "recorded": True,
        "view": view,
        "job": job,
        "begin_us": begin_us,
        "clocks": {node: {"round_trip_us": 1.0, "dropped": 3}},
    }
    path.write_text(json.dumps({"traceEvents": rows, "otherData": other}))


def test_parts_of_one_job_are_put_on_one_clock_and_other_jobs_apart(tmp_path):
    timeline(tmp_path / "t-view2-rank0.json", "a", 5e6, "worker 0", [(0, 10), (100, 10)])
    timeline(tmp_path / "t-view2-rank1.json", "a", 5e6 + 20, "worker 1", [(0, 30)])
    timeline(tmp_path / "t-view2.json", "b", 9e6, "worker 0", [(0, 10)])  # of another run
    timeline(tmp_path / "t-view10.json", "c", 0, "worker 0", [], view=10)
    other, parts, empty = report.load_all(tmp_path / "t.json")
    begun = {
        step: pytest.approx((1e-6 * b, 1e-6 * e))
        for step, (b, e) in {1: (0, 50), 2: (100, 110)}.items()
    }
    if other.parts == 2:
        other, parts = parts, other
    assert parts.steps() == begun and parts.dropped == 6 and other.parts == 1
    assert (empty.view, empty.spans) == (10, [])
    done = hipress("report", "--no-picture", tmp_path / "t.json")
    assert done.returncode == 0 and "view 10 came to no step" in done.stdout, done.stderr
    assert "6 tasks are missing" in done.stdout
    done = hipress("report", "--no-picture", tmp_path / "u.json")
    assert done.returncode == 1 and "cannot read the timeline" in done.stderr
