"""Full disks: files that cannot be written are lost, and training continues.

The disk is a small tmpfs in a mount namespace of the test's processes.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.launch import LAUNCH
from harness.processes import base_environment
from hipress.base import files
from hipress.elastic.training.journal import Journal

SCRIPTS = Path(__file__).parents[1]
BYTES = 256 << 10

needs_mounts = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"),
    reason="mounting a small file system needs root and unshare",
)


def run_on_full_disk(folder, command, env=None, output="", timeout=60):
    """Run a command while ``folder`` is a full disk that contains a small file, ``checkpoint``.

    Args:
        folder: An empty folder.
        command: The command and its arguments.
        env: Additional environment variables.
        output: File of the command's standard output; by default it is returned.
        timeout: Seconds until the command must have ended.
    """
    steps = [
        f"mount -t tmpfs -o size={BYTES} full {folder}",
        f"printf old > {folder}/checkpoint",
        f"(dd if=/dev/zero of={folder}/filler bs=4k 2>&1 || true) > /dev/null",
        f'exec "$@" {f"> {output}" if output else ""}',
    ]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", " && ".join(steps), "sh", *map(str, command)],
        env=base_environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def script(kind, folder):
    return [sys.executable, SCRIPTS / "full_disk.py", kind, folder]


def test_lines_that_cannot_be_written_are_lost_with_one_warning(tmp_path, caplog):
    path = tmp_path / "folder" / "lines"
    path.parent.mkdir()
    path.symlink_to("/dev/full")
    file = files.LineFile(path, "journal")
    file.write("first")
    file.write("second")
    reason = f"cannot write the journal {path}: No space left on device; training continues"
    assert [record.getMessage().startswith(reason) for record in caplog.records] == [True]
    file.close()
    path.unlink()
    file.write("third")
    assert path.read_text() == "third\n"


def test_line_after_a_partial_line_begins_a_line(tmp_path, monkeypatch):
    file = files.LineFile(tmp_path / "lines", "journal")
    real, room = os.write, [3]

    def write(handle, data):
        if not room:
            raise OSError(28, "No space left on device")
        return real(handle, data[: room.pop()])

    monkeypatch.setattr(os, "write", write)
    file.write("first")
    monkeypatch.undo()
    file.write("second")
    assert (tmp_path / "lines").read_text() == "fir\nsecond\n"


def test_journal_on_a_full_disk_is_a_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "worker-0.jsonl").symlink_to("/dev/full")
    monkeypatch.setenv("HIPRESS_ELASTIC_LOG", str(tmp_path))
    journal = Journal(0)
    for step in range(3):
        journal.write("step", step=step)
    assert len(caplog.records) == 1
    assert "worker-0.jsonl: No space left on device" in caplog.text


def test_journal_in_a_folder_that_cannot_be_made_is_a_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HIPRESS_ELASTIC_LOG", str(tmp_path / "file" / "log"))
    Journal(0).write("start")
    assert "Not a directory" in caplog.text


def test_journal_has_a_line_for_each_event(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPRESS_ELASTIC_LOG", str(tmp_path / "log"))
    for restart in range(2):
        Journal(1).write("start", restart=restart)
    lines = (tmp_path / "log" / "worker-1.jsonl").read_text().splitlines()
    assert [json.loads(line)["restart"] for line in lines] == [0, 1]


@pytest.mark.slow
@needs_mounts
def test_elastic_job_trains_on_a_full_disk(tmp_path):
    pytest.importorskip("torch")
    env = {
        "TMPDIR": str(tmp_path),
        "HIPRESS_ELASTIC_LOG": str(tmp_path / "log"),
        "HIPRESS_TIMELINE": str(tmp_path / "timeline.json"),
        "HIPRESS_DEBUG_DIR": str(tmp_path / "debug"),
    }
    options = ["--elastic", "--max-restarts", "0", "-n", "2", "--env", "TMPDIR"]
    line = [sys.executable, LAUNCH, *options, sys.executable, SCRIPTS / "elastic_steps.py"]
    done = run_on_full_disk(tmp_path, line, env, output=tmp_path / "output", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot write the journal") == 2, done.stderr
    assert "the timeline could not be written" in done.stderr, done.stderr


@needs_mounts
def test_code_is_compiled_elsewhere_when_the_cache_is_full(tmp_path):
    done = run_on_full_disk(tmp_path, script("code", tmp_path))
    assert done.stdout.splitlines() == ["answer 42"], done.stderr
    assert f"cannot write {tmp_path}/cache: No space left on device" in done.stderr


@needs_mounts
def test_checkpoint_on_a_full_disk_is_an_error_that_keeps_the_old_one(tmp_path):
    error, state = run_on_full_disk(tmp_path, script("checkpoint", tmp_path)).stdout.splitlines()
    assert error == (f"cannot write the checkpoint {tmp_path}/checkpoint: No space left on device")
    assert state == "['checkpoint', 'filler'] b'old'"


@pytest.mark.parametrize("fails", ["save", "replace"])
def test_failed_checkpoint_folder_keeps_the_old_one(tmp_path, monkeypatch, fails):
    pytest.importorskip("torch")
    from hipress.torch.integrations import checkpoint_folder

    def save(_, checkpoint_id):
        os.mkdir(checkpoint_id)
        if fails == "save":
            raise OSError(28, "No space left on device")

    def replace(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "hipress").mkdir()
    (tmp_path / "hipress" / "old").touch()
    monkeypatch.setattr(checkpoint_folder.checkpoint, "save", save)
    monkeypatch.setattr(checkpoint_folder.files, "replace", replace)
    monkeypatch.setattr(checkpoint_folder, "authenticate", lambda: None)
    monkeypatch.setattr(checkpoint_folder.dist, "get_rank", lambda: 0)
    with pytest.raises(OSError, match="No space"):
        checkpoint_folder.save_folder(object(), str(tmp_path / "hipress"))
    assert os.listdir(tmp_path) == ["hipress"]
    assert os.listdir(tmp_path / "hipress") == ["old"]


@needs_mounts
def test_figures_for_tensorboard_on_a_full_disk_are_a_warning(tmp_path):
    pytest.importorskip("tensorboardX")
    done = run_on_full_disk(tmp_path, script("figures", tmp_path), timeout=30)
    assert done.stdout == "done\n", done.stderr
    assert done.stderr.count("No space left on device") == 1, done.stderr
