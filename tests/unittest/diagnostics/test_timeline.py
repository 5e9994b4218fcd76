"""Recorded timelines, the report, the profile: real jobs of a few processes on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.cluster import run_cluster
from harness.processes import base_environment
from hipress.diagnostics import report
from hipress.planning import fitting, planner, profiles
from hipress.planning.plan import GradientSize
from hipress.topology import topologies
from scripts import SCRIPTS

ROOT = Path(__file__).resolve().parents[3]
STEPS, SIZE = 3, 1_200_000

WORKER = SCRIPTS / "timeline.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """Return the timeline of a job of two workers and two servers."""
    path = tmp_path_factory.mktemp("timeline") / "job.json"
    run_cluster(WORKER, workers=2, servers=2, env={"HIPRESS_TIMELINE": str(path)})
    return path


def test_every_task_of_every_node_is_there(recorded):
    timeline = report.load(recorded)
    graph = topologies.build("ps", SIZE, 2, 2)
    names = {"ENCODE": "encode", "DECODE": "decode", "MERGE": "merge", "SEND": "send"}
    names["RECV"] = "receive"
    expected = Counter()
    for node, tasks in graph.tasks.items():
        for task in tasks:
            if task.op.name in names:
                expected[str(node), names[task.op.name]] += STEPS
    found = Counter((s.node, s.op) for s in timeline.spans if s.op != "gradient")
    assert found == expected
    assert {s.key for s in timeline.spans} == {'the "key"'}
    assert len([s for s in timeline.spans if s.op == "gradient"]) == 2 * STEPS


def test_clocks_are_one(recorded):
    """Clocks are one: a message arrives after it was sent, by less than the clocks' error earlier
    at worst."""
    rows = json.loads(recorded.read_text())["traceEvents"]
    sends, receives = {}, {}
    for row in rows:
        if row["ph"] == "X" and row["name"] in ("send", "receive"):
            a = row["args"]
            nodes = (a["node"], a["peer"]) if row["name"] == "send" else (a["peer"], a["node"])
            key = (*nodes, a["partition"], a["iteration"])
            (sends if row["name"] == "send" else receives)[key] = row
    assert len(sends) == len(receives) > 0 and sends.keys() == receives.keys()
    error = 2e6 * report.load(recorded).clock_error  # microseconds, of both ends
    for key, send in sends.items():
        arrived = receives[key]["ts"] + receives[key]["dur"]
        assert arrived >= send["ts"] - error
        assert send["args"]["bytes"] == receives[key]["args"]["bytes"]


def test_tasks_of_a_thread_do_not_overlap(recorded):
    rows = [r for r in json.loads(recorded.read_text())["traceEvents"] if r["ph"] == "X"]
    last: dict[tuple, float] = {}
    for row in sorted(rows, key=lambda r: r["ts"]):
        lane = (row["pid"], row["tid"])
        assert row["ts"] >= last.get(lane, 0.0) - 0.002  # rounding of microseconds
        last[lane] = row["ts"] + row["dur"]


def test_shares_add_up_to_the_step(recorded):
    timeline = report.load(recorded)
    step = timeline.middle_step()
    begin, end = timeline.steps()[step]
    found = report.shares(timeline, step)
    assert set(found) == {"server 0", "server 1", "worker 0", "worker 1"}
    for share in found.values():
        assert share.compute + share.network + share.waiting == pytest.approx(end - begin)
        assert min(share.compute, share.network, share.waiting) >= 0
    assert "encode" in report.summary(timeline)


def made(path: Path, pushes: list[tuple[str, str, int, float, float]]) -> report.Timeline:
    """Write a timeline of gradients: (node, key, iteration, begin, duration) in milliseconds."""
    rows = [
        {
            "ph": "X",
            "name": "gradient",
            "pid": 1,
            "ts": 1e3 * begin,
            "dur": 1e3 * length,
            "args": {"node": node, "key": key, "iteration": iteration, "bytes": 4, "elements": 1},
        }
        for node, key, iteration, begin, length in pushes
    ]
    path.write_text(json.dumps({"traceEvents": rows, "otherData": {"recorded": True}}))
    return report.load(path)


def milliseconds(timeline: report.Timeline) -> list[tuple[float, float]]:
    return [pytest.approx((1e3 * b, 1e3 * e)) for b, e in timeline.steps().values()]


def test_what_measures_the_network_is_no_step_of_training(tmp_path):
    """Network measurements are no training steps: their keys have separate iterations, before
    training and during it."""
    names = ("hipress/auto/65536", "fusion buffer of hipress/auto/0/1")
    measured = [("worker 0", names[i % 2], i, 10.0 * i, 9) for i in range(1, 20)]
    trained = [
        ("worker 0", key, i, 1000.0 * i + at, 2) for i in range(1, 5) for at, key in enumerate("ab")
    ]
    timeline = made(tmp_path / "job.json", measured + trained)
    assert milliseconds(timeline) == [(1000.0 * i, 1000.0 * i + 3) for i in range(1, 5)]
    text = report.summary(timeline)
    assert "8 tasks, 4 steps; a step's synchronization takes 3.00 ms" in text
    assert "left out: 19 tasks of 2 keys that measured the network" in text
    assert "hipress/auto" not in text
    timeline = made(tmp_path / "job.json", measured)
    with pytest.raises(report.ReportError, match="no gradient that was synchronized"):
        timeline.middle_step()


def test_steps_are_cut_where_a_key_is_pushed_again(tmp_path):
    """Steps are separated where a key is pushed again. Layer b is frozen in the first two steps,
    and a in the last, so iterations do not agree."""
    keys = ["a", "a", "ab", "ab", "b"]
    pushes, counts = [], Counter()
    for step, pushed in enumerate(keys):
        for at, key in enumerate(pushed):
            counts[key] += 1
            for late, node in enumerate(("worker 0", "worker 1")):
                pushes.append((node, key, counts[key], 100.0 * step + 10 * at + late, 5))
    timeline = made(tmp_path / "job.json", pushes)
    assert milliseconds(timeline) == [
        (100.0 * i, 100.0 * i + 10 * len(k) - 4) for i, k in enumerate(keys)
    ]


def test_a_fragment_of_diloco_is_a_step(tmp_path):
    """A fragment of DiLoCo is a step. Its last key holds the number of workers with a NaN;
    fragments of an outer step have other keys."""
    pushes = [
        ("worker 0", key, turn + 1, 1000.0 * (2 * turn + fragment) + at, 4)
        for turn in range(3)
        for fragment in range(2)
        for at, key in enumerate((f"w{fragment}", f"DiLoCo: every 20, fragment {fragment}"))
    ]
    timeline = made(tmp_path / "job.json", pushes)
    assert milliseconds(timeline) == [(1000.0 * i, 1000.0 * i + 5) for i in range(6)]


@pytest.mark.slow
def test_the_command_draws_measured_beside_predicted(recorded, tmp_path):
    pytest.importorskip("matplotlib")
    net = tmp_path / "net.txt"
    net.write_text(f"key,{SIZE}\n")
    predicted, picture = tmp_path / "predicted.json", tmp_path / "picture.png"
    simulate = ["simulate", "--model", str(net), "--nodes", "2", "--topology", "ps"]
    for command in (
        [*simulate, "--timeline", str(predicted)],
        ["report", str(recorded), "--predicted", str(predicted), "--output", str(picture)],
    ):
        done = hipress(*command)
        assert done.returncode == 0, done.stderr
    assert "simulated, 4 nodes" in done.stdout and "recorded, 4 nodes" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_no_timeline_is_one_sentence(tmp_path):
    path = tmp_path / "x.json"
    assert "cannot read" in hipress("report", str(path)).stderr
    path.write_text("{}")
    assert "is not a timeline" in hipress("report", str(path)).stderr


def hipress(*arguments: str, timeout: float = 100) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hipress", *arguments],
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def test_nothing_is_recorded_unless_asked_for(tmp_path):
    results = run_cluster(WORKER, workers=1, servers=1, env={"HIPRESS_TIMELINE": ""})
    assert "timeline" not in "".join(result.output for result in results)


def test_a_timeline_that_cannot_be_written_does_no_harm(tmp_path):
    path = tmp_path / "absent" / "job.json"
    results = run_cluster(WORKER, workers=1, servers=1, env={"HIPRESS_TIMELINE": str(path)})
    scheduler = results[0].output
    assert f"the timeline could not be written to '{path}'" in scheduler


def test_a_profile_of_two_kinds_of_hops_is_refused(tmp_path):
    """A profile of two kinds of hops is refused: in a ring of four workers on two machines, two
    hops are the network's, two are not."""
    args = {"node": "worker 0", "key": "colocated/place/2/8/4", "iteration": 2}
    event = {"ph": "X", "name": "gradient", "pid": 1, "ts": 0, "dur": 1, "args": args}
    clocks = {f"worker {rank}": {"round_trip_us": 1.0, "dropped": 0} for rank in range(4)}
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"traceEvents": [event], "otherData": {"clocks": clocks}}))
    with pytest.raises(fitting.FittingError, match="4 workers on 2 machines"):
        fitting.profile(path, {})
    for machines in (1, 4):
        fitting.check_place(machines, 4)


def test_a_profile_has_each_compression_once():
    done = hipress("profile", "--type", "tbq:threshold=0.5", "--type", "tbq:threshold=1")
    assert done.returncode == 1 and "--type tbq is there twice" in done.stderr


@pytest.mark.slow
def test_a_profile_is_measured_and_a_plan_made_from_it(tmp_path):
    path = tmp_path / "profile.json"
    done = hipress(
        *("profile", "--workers", "2", "--type", "tbq:threshold=0.5"),
        *("--largest", "65536", "--output", str(path)),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "2 workers, all on one host" in done.stdout
    profile = profiles.load(path)
    assert profile.compressed_types() == ["tbq"] and profile.shared_host
    tbq = profile.codecs["tbq"]
    assert tbq.bytes_per_element == pytest.approx(0.25, rel=0.01)
    for op in ("encode", "decode", "merge", "add"):
        assert 0 < getattr(tbq, op)(1 << 16) < 1.0
    values = json.loads(path.read_text())
    assert values["codecs"]["tbq"]["params"] == {"threshold": "0.5"}
    assert len(values["samples"]["send"]) == 9
    assert 0 <= profile.part < 1e-3 and profile.cluster().part == profile.part
    assert [row[0] for row in values["samples"]["parts"]] == [32, 64, 128, 256]
    del values["network"]["part"]  # as in profiles made before messages were shared
    path.write_text(json.dumps(values))
    assert profiles.load(path).cluster().part is None
    assert not path.with_suffix(".timeline.json").exists()
    plan = planner.make([GradientSize("g", 10**6)], "ring", 4, profile)
    assert plan.choices[0].raw > 0
    bad = hipress("profile", "--type", "none", "--output", str(path))
    assert bad.returncode == 1 and "name a compression type" in bad.stderr
    unknown = hipress("profile", "--type", "nosuch", "--output", str(path))
    assert unknown.returncode == 1 and "nosuch" in unknown.stderr


@pytest.mark.slow
def test_the_seeds_training_script_runs(tmp_path):
    plan = tmp_path / "plan.txt"
    names = [f"{layer}_{part}" for layer in "abcd" for part in ("weight", "bias")]
    sizes = [500, 20, 25_000, 50, 400_000, 500, 5000, 10]
    rows = [f"{n},{s},{'y' if s > 10_000 else 'n'},2" for n, s in zip(names, sizes)]
    plan.write_text("\n".join(rows) + "\n")
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "examples/synthetic/data_parallel_train.py")),
            *("--numprocess", "2", "--servers", "localhost:1,127.0.0.1:1", "--topo", "Ring"),
            *("--model", "lenet", "--comp-alg", "tbq", "--comp-param", "threshold=0.01"),
            *("--comprplan", str(plan), "--horovodrun", "--interface", "lo"),
            *("--numexamples", "16", "--batch-size", "4"),
        ],
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(text for text in done.stdout.splitlines() if text.startswith("[worker 0] {"))
    result = json.loads(line[len("[worker 0] ") :])
    assert result["workers"] == 2 and result["images_per_second"] > 0
