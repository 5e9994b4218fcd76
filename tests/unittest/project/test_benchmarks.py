"""Runner, results and tables of the benchmarks; the benchmarks themselves define what they
measure."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.__main__ import SUBJECTS
from benchmarks.codecs import bounds, speed
from benchmarks.common import jobs, results, tables
from benchmarks.common.jobs import separate_job
from benchmarks.training import quality
from benchmarks.transport import speed as transport_speed
from harness import ROOT, netns

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_the_runner_lists_its_subjects():
    listed = run()
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(SUBJECTS)
    assert run("nonesuch").returncode == 1


@pytest.mark.parametrize("text", [bounds.DRAWS, bounds.WITHIN, "graddrop.cll"])
def test_parts_of_codecs_are_timed(text):
    """Parts of codecs are timed: without a state, with one that is kept, and with one that a codec
    leaves lazy."""
    timed = bounds.Timed(text, np.ones(1000, np.float32))
    timed.run(0.01)
    assert 0 < timed.best < 1


def test_peers_of_codecs_keep_their_memory(monkeypatch):
    """Peers of codecs keep their memory. Otherwise their large tensors are empty pages of the
    kernel's in each run, and ours are not."""
    seen = []

    def job(command, count, env, timeout, priority):
        seen.append(env)
        return separate_job(command, count, env, timeout, priority)

    monkeypatch.setattr(speed, "separate_job", job)
    rows = speed.peer_rows(4096, 0.001)
    assert seen == [jobs.MALLOC] and all(row["gb_per_s"] > 0 for row in rows)
    assert [(row["codec"], row["kernels"]) for row in rows[:2]] == [
        ("2bit", "NumPy"),
        ("onebit", "NumPy"),
    ]


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_has_a_main_and_says_what_it_is(name):
    if name == "picture":
        pytest.importorskip("matplotlib")
    if name == "codecs":
        pytest.importorskip("torch")
    module = importlib.import_module(f"benchmarks.{SUBJECTS[name]}")
    assert callable(module.main) and module.__doc__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_docs_tables_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert tables.written(text) == text, "write them: python -m benchmarks tables"


def test_the_tables_of_a_page_are_marked():
    marked = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = re.findall(tables.MARKED, marked)
    assert len(names) >= 18
    for mark in ("<!-- table: ", "<!-- /table -->"):
        assert len(re.findall(f"^{mark}", marked, re.MULTILINE)) == len(names)


def test_a_typed_number_is_found(tmp_path, monkeypatch):
    record = {"tables": {"": {"heads": ["", "ms"], "rows": [["ours", "31.4"]]}}}
    (tmp_path / "first.json").write_text(json.dumps(record))
    record["tables"]["k"] = {"heads": ["", "a", "b"], "rows": [["x", "{first:ours:ms}", "1 (2)"]]}
    (tmp_path / "second.json").write_text(json.dumps(record))
    monkeypatch.setattr(tables, "PUBLISHED", tmp_path)
    page = "before\n<!-- table: second/k -->\n| typed | 12 |\n<!-- /table -->\nafter\n"
    expected = "| | a | b |\n|---|---|---|\n| x | 31 | 1 (2) |\n"
    written = tables.written(page)
    assert written == page.replace("| typed | 12 |\n", expected)
    assert tables.written(written) == written


def test_a_difference_of_another_result_is_not_rounded(tmp_path, monkeypatch):
    tables_of = {"gpt": {"heads": ["", "against none"], "rows": [["onebit", "-1.38%"]]}}
    (tmp_path / "losses.json").write_text(json.dumps({"tables": tables_of}))
    rows = [["loss", "{losses/gpt:onebit:against none}"]]
    (tmp_path / "page.json").write_text(
        json.dumps({"tables": {"": {"heads": ["", "GPT"], "rows": rows}}})
    )
    monkeypatch.setattr(tables, "PUBLISHED", tmp_path)
    assert "| loss | -1.38% |" in tables.markdown("page")


def test_cells_of_the_transport_benchmark_are_read_from_its_output():
    line = f"{'4 KiB, GB/s':36}{'3.73':>10} (0.456 cpu s/GB){'0.84':>12}"
    assert transport_speed.cells(line) == ["4 KiB, GB/s", "3.73 (0.46)", "0.84"]


def test_a_record_holds_what_is_needed_to_judge_it(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "WRITTEN", tmp_path)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    record = results.Record("made", {"rate": "1gbit", "dilation": 4.0})
    record.table(["", "ms"], [["ours", 1.5]], "a title")
    record["rows"] = [{"name": "ours", "seconds": [0.0015]}]
    found = json.loads(record.save().read_text())
    assert found["options"] == {"rate": "1gbit", "dilation": 4.0}
    assert {"date", "cpu", "cores", "versions", "kernel", "commit"} <= set(found["machine"])
    assert found["tables"][""]["rows"] == [["ours", "1.5"]]
    assert found["rows"][0]["seconds"] == [0.0015]


def test_what_keeps_the_quality_of_training():
    runs = [
        {"task": "gpt", "method": method, "seed": seed, "loss": loss, "accuracy": 0.5}
        for method, losses in (("float32", (2.0, 2.0, 2.0)), ("auto", (2.0, 1.98, 2.03)))
        for seed, loss in enumerate(losses)
    ] + [
        {"task": "cnn", "method": method, "seed": 0, "loss": 0.1, "accuracy": right}
        for method, right in (("float32", 0.96), ("auto", 0.95))
    ]
    found = quality.changes(runs, [run for run in runs if run["method"] == "auto"])
    assert found == pytest.approx([0.0, -0.01, 0.015, -0.01 / 0.96])
    assert quality.keeps("gpt", found[:3]) and quality.worst("gpt", found[:3]) > 0.01
    assert not quality.keeps("gpt", [0.0, 0.0, 0.021])
    assert not quality.keeps("gpt", [0.011, 0.011, 0.011])
    assert not quality.keeps("cnn", found[3:])
    assert quality.keeps("cnn", [0.05, -0.019])


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_the_quality_of_training_with_auto_is_measured():
    """The benchmark of training quality with type auto runs.

    Cost: It trains short models with and without compression.
    """
    pytest.importorskip("torch")
    done = run("quality", "--quick", "--output", "test-quality")
    assert done.returncode == 0, done.stderr
    file = results.WRITTEN / "test-quality.json"
    found = json.loads(file.read_text())
    file.unlink()
    plain, auto = found["runs"]
    assert (plain["method"], auto["method"]) == ("float32", "auto")
    assert sum(auto["ways"].values()) == found["options"]["steps"]
    assert "auto: " in auto["events"][0][1]
    assert auto["compressed_share"] > 0.9 and auto["times_fewer_bytes"] > 1.5
    assert 0 < auto["loss"] < 4.6 and 0 < plain["loss"] < 4.6  # below that of guessing by chance


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_collectives_of_fsdp2_are_measured():
    """The benchmark of FSDP2's collectives runs.

    Cost: It trains nothing, but makes an emulated network.
    """
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp.FSDPModule, "set_custom_all_gather"):
        pytest.skip("needs FSDPModule.set_custom_all_gather")
    done = run("fsdp", "--quick", "--parts", "collectives", "--output", "test-fsdp")
    assert done.returncode == 0, done.stderr
    file = results.WRITTEN / "test-fsdp.json"
    found = json.loads(file.read_text())["collectives"]["1gbit"]
    file.unlink()
    assert list(found) == [
        f"{name}, {what}"
        for name in ("Gloo", "HiPress")
        for what in ("gather", "reduce-scatter", "both at once")
    ]
    assert found["HiPress, both at once"]["sent"] > 1.9 * found["HiPress, gather"]["sent"]
