"""Saved files, which are never half written: a full disk, a killed process and a crash leave the
old file."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import base_environment
from hipress.base import files
from scripts import SCRIPTS

OLD = "old content\n"


def limited(code: str, size: int, *arguments: str) -> subprocess.CompletedProcess:
    """Run code whose files cannot grow beyond ``size`` bytes: the disk is full for them."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        preexec_fn=limit,
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path):
    path = tmp_path / "plan"
    files.write(path, "plan", OLD)
    path.chmod(0o640)
    files.write(path, "plan", "new\n")
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["plan"]


def test_a_link_stays_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "plan").write_text(OLD)
    (tmp_path / "link").symlink_to("plan")
    files.write(tmp_path / "link", "plan", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "plan").read_text() == "new"
    files.write("/dev/null", "plan", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("place", ["no/plan", "folder"])
def test_a_path_that_cannot_be_written(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(files.FileError, match=f"cannot write the plan .*{place}"):
        files.write(tmp_path / place, "plan", "new")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "save",
    [
        "files.write(path, 'plan', 'x' * 100_000)",
        "files.write(path, 'profile', b'x' * 100_000)",
        "from hipress.planning import plan; gradient = plan.GradientSize('g' * 100_000, 1);"
        " plan.save(path, [(gradient, plan.Decision(True, 1))])",
        "import mxnet_hipress; from mxnet_hipress import _states;"
        " _states.write(path, [b'x' * 100_000], False)",
    ],
    ids=["text", "bytes", "plan", "states"],
)
def test_a_full_disk_leaves_the_old_file(tmp_path, save):
    path = tmp_path / "file"
    path.write_text(OLD)
    ended = limited(
        f"import sys; from hipress import files; path = sys.argv[1]; {save}", 4096, str(path)
    )
    assert ended.returncode == 1 and "cannot write the" in ended.stderr, ended.stderr
    assert "File too large" in ended.stderr.splitlines()[-1]
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.slow
def test_a_picture_that_does_not_fit_leaves_the_old_one(tmp_path):
    timeline = tmp_path / "job.json"
    timeline.write_text(
        '{"traceEvents": [{"ph": "X", "name": "gradient", "pid": 1, "ts": 1, "dur": 2,'
        ' "args": {"node": "worker 0", "key": "w"}}]}'
    )
    picture = tmp_path / "job.png"
    picture.write_text(OLD)
    ended = limited(
        "from hipress.cli.main import main; import sys; main(sys.argv[1:])",
        1024,
        "report",
        str(timeline),
        "--output",
        str(picture),
    )
    assert ended.returncode == 1 and "cannot write the picture" in ended.stderr, ended.stderr
    assert picture.read_text() == OLD
    assert sorted(os.listdir(tmp_path)) == ["job.json", "job.png"]


def test_a_killed_process_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "states"
    path.write_text(OLD)
    script = SCRIPTS / "files" / "killed.py"
    writer = subprocess.Popen(
        [sys.executable, str(script), str(path)], env=base_environment(), stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout.readline() == b"written\n"
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert path.read_text() == OLD
    # What it left does not hinder the next one, even one of the same process id.
    (left,) = (name for name in os.listdir(tmp_path) if name != "states")
    (tmp_path / left).rename(tmp_path / left.replace(str(writer.pid), str(os.getpid())))
    monkeypatch.setattr(files, "_numbers", itertools.count())
    files.write(path, "states", "new\n")
    assert path.read_text() == "new\n"
    assert len(os.listdir(tmp_path)) == 2


def test_content_is_on_the_disk_before_it_has_the_name(tmp_path, monkeypatch):
    """Content is on the disk before it has the name: after a power cut a name without its content
    would be worse than the old file."""
    order = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: order.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    rename = os.replace
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("rename"), rename(*names)))
    files.write(tmp_path / "plan", "plan", "new\n")
    assert len(order) == 3
    assert order[0].endswith(".partial") and order[1:] == ["rename", str(tmp_path)]


def test_many_threads_write_one_file(tmp_path):
    script = SCRIPTS / "files" / "threads.py"
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "plan")],
        env=base_environment(),
        timeout=60,
        check=True,
    )
    assert os.listdir(tmp_path) == ["plan"]


@pytest.mark.parametrize("in_memory", [True, False])
def test_anonymous_file_is_readable_by_this_user_only(
    in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.delattr("os.memfd_create", raising=False)
    with files.anonymous("hipress-test", b"content") as file:
        assert Path(f"/proc/self/fd/{file.fileno()}").read_bytes() == b"content"
        status = os.fstat(file.fileno())
        assert status.st_nlink == 0 and (in_memory or status.st_mode & 0o077 == 0)
