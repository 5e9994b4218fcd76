"""The command `hipress explain`, and the files that a job leaves for it."""

from __future__ import annotations

import json
import os
import sys

import pytest
from typer.testing import CliRunner

from hipress.autotune.explanation import Explanation, Row, load
from hipress.autotune.journal import TuningJournal
from hipress.cli.main import build_app


def cli(*args):
    return CliRunner().invoke(build_app("explain"), ["explain", *map(str, args)])


def example():
    rows = [Row("uncompressed", 300.0, 0.5), Row("maxmin bits=8", 80.0, 1.0, 100.0, chosen=True)]
    found = Explanation("auto: first", rows)
    found.say("auto: second")
    found.predict()
    return found


def test_steps_by_other_ways_are_predicted_from_the_measured_one():
    found = example()
    assert [row.predicted_ms for row in found.rows] == [320.0, 100.0]
    # 20 ms of computing and 80 of waiting: 28 on a network ten times as fast, 60 for half of two.
    assert "10 times as fast: training up to 3.57 times as fast" in found.next()[0]
    assert "twice as large: training up to 1.67 times as fast" in found.next()[1]
    found.rows[1].gradients_ms = 2.0
    assert all(said.endswith("would not pay") for said in found.next())
    found.rows[1].step_ms = None
    assert Explanation("nothing").next() == []


def test_the_last_sentences_are_kept():
    found = Explanation("")
    for number in range(200):
        found.say(f"auto: sentence {number}")
    assert found.sentence == "auto: sentence 199"
    assert found.history == [f"auto: sentence {number}" for number in range(149, 199)]


def test_a_file_is_what_was_saved(tmp_path):
    path = tmp_path / "job.json"
    found = example()
    found.save(path)
    again = load(path)
    assert str(again) == str(found) and again.rows == found.rows
    shown = cli(path)
    assert shown.exit_code == 0 and shown.output.strip() == str(found)
    assert shown.output.splitlines()[:2] == ["auto: first", "auto: second"]
    assert json.loads(cli(path, "--json").output) == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[]", "not an object"),
        ('{"format": "hipress-profile", "version": 1}', "has format hipress-profile version 1"),
        ('{"format": "hipress-explanation", "version": 1}', "lacks what an explanation must hold"),
        (
            '{"format": "hipress-explanation", "version": 1, "sentence": "", "history": [], '
            '"next_steps": [], "rows": [{"method": "bf16", "gradients_ms": null, "sample": 1}]}',
            r"rows\[0\].gradients_ms",
        ),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        load(path)
    assert cli(path).exit_code == 1
    assert cli(tmp_path / "none").exit_code == 1 and cli().exit_code == 1


def test_a_profile_is_explained(tmp_path):
    model = tmp_path / "model.csv"
    model.write_text("a,4000000,10,20\nb,1000,1,1\n")
    slow = json.loads(cli("--model", model, "--nodes", 3, "--bandwidth", "1gbit", "--json").output)
    fast = json.loads(cli("--model", model, "--bandwidth", "1000gbit", "--json").output)
    for values, chosen in ((slow, "published"), (fast, "uncompressed")):
        assert [row["method"] for row in values["rows"] if row["chosen"]] == [chosen]
        best = min(row["predicted_ms"] for row in values["rows"])
        assert best >= 32 and values["sentence"].startswith(f"model on {2 + (values is slow)} ho")
    assert "would not pay" in fast["next_steps"][0]


def journal(rank, folder, name):
    """Train with one method, with HIPRESS_EXPLAIN; return steps and bytes that rank 0 has sent."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import journal, network_watch
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend
    from test_torch_ddp import loss_of, network

    journal.EVERY, network_watch.FACTOR = 20, 1e9
    os.environ["HIPRESS_EXPLAIN"] = os.path.join(folder, "job.json")
    os.environ["HIPRESS_TENSORBOARD"] = os.path.join(folder, "runs")
    frontend.Sample.seconds = lambda step: 1.0 if step.method.name == name else 2.0
    trials.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    ddp = DistributedDataParallel(network())
    hipress.torch.compress(ddp, min_size=1000)
    for step in range(50):
        loss_of(ddp, rank, step).backward()
    return sum(p.numel() for p in ddp.parameters())


def events(folder):
    """Return the scalars by step, and the texts, of the only file that TensorBoard would read
    there."""
    from tensorboardX.proto import event_pb2

    (path,) = folder.glob("*tfevents*")
    data, at, figures, texts = path.read_bytes(), 0, {}, []
    while at < len(data):  # TFRecord: length, its checksum, the event, its checksum
        size = int.from_bytes(data[at : at + 8], "little")
        event = event_pb2.Event.FromString(data[at + 12 : at + 12 + size])
        at += size + 16
        for value in event.summary.value:
            tag = value.tag.removeprefix("hipress/")
            if value.HasField("tensor"):
                texts += [text.decode() for text in value.tensor.string_val]
            else:
                figures.setdefault(event.step, {})[tag] = value.simple_value
    return figures, texts


def test_a_process_writes_one_file_for_tensorboard(monkeypatch, tmp_path):
    """A process writes one file for TensorBoard, in whatever order parts of it choose, as in the
    views of an elastic job."""
    pytest.importorskip("tensorboardX")
    monkeypatch.setenv("HIPRESS_TENSORBOARD", str(tmp_path / "runs"))
    first, second, other = (TuningJournal(rank, 1.0, int) for rank in (0, 0, 1))
    assert first._tensorboard is second._tensorboard is not None and other._tensorboard is None
    assert len([*(tmp_path / "runs").iterdir()]) == 1
    monkeypatch.setenv("HIPRESS_TENSORBOARD", str(tmp_path / "more"))
    assert TuningJournal(0, 1.0, int)._tensorboard is not first._tensorboard


@pytest.mark.parametrize("missing", [True, False])
def test_tensorboard_cannot_be_written(monkeypatch, tmp_path, caplog, missing):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HIPRESS_TENSORBOARD", str(tmp_path / "file" / "runs"))
    if missing:
        monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert TuningJournal(0, 1.0, int)._tensorboard is None
    sentence = r"pip install tensorboardX" if missing else "Not a directory"
    assert sentence in caplog.text and "no figures for TensorBoard" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ratio"), [("maxmin bits=8", 3.5), ("uncompressed", None)])
def test_a_job_leaves_what_it_knows(tmp_path, name, ratio):
    from harness.torch_ranks import returned, run_ranks

    (elements, _) = returned(run_ranks(journal, 2, str(tmp_path), name))
    assert f"> {name}" in str(load(tmp_path / "job.json"))
    lines = [json.loads(line) for line in (tmp_path / "job.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [20, 40]
    last = lines[-1]
    assert last["method"] == name and last["step_ms"] > 0
    figures, texts = events(tmp_path / "runs")
    for line in lines:
        numbers = {n: v for n, v in line.items() if isinstance(v, (int, float)) and n != "step"}
        assert figures[line["step"]] == pytest.approx(numbers)
    assert any(name in text for text in texts)
    if ratio is None:
        assert last["bytes"] is None and last["ratio"] is None and last["saved_ms"] == 0
        return
    assert last["saved_ms"] == pytest.approx(1000)
    assert ratio < last["ratio"] < 4.1 and last["bytes"] < 4 * elements / ratio
    assert 0 < last["rounding"] < 0.1
