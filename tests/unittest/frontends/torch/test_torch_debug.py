"""Debugging of a PyTorch job: which rank is late, and where the time of its steps is spent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.processes import base_environment, free_port, wait_until
from hipress.diagnostics import report
from scripts import SCRIPTS
from test_debug import hipress, threads, wait_for_dumps

pytest.importorskip("torch", reason="needs torch")

SCRIPT = SCRIPTS / "torch_debug.py"


class Ranks:
    """Two ranks of the script above, under torchrun."""

    def __init__(self, folder: Path, kind: str, timeout: float, **env: str) -> None:
        self._log = folder / "log"
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        command += ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, str(SCRIPT), kind, str(timeout)],
                env=base_environment({"GLOO_SOCKET_IFNAME": "lo", **env}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str, count: int = 1, timeout: float = 60) -> None:
        deadline = time.monotonic() + timeout
        while self.output().count(text) < count:
            assert time.monotonic() < deadline, f"no {text!r}:\n{self.output()}"
            time.sleep(0.05)

    def pids(self) -> dict[int, int]:
        """Return process ids by rank."""
        self.wait_for("ready", 2)
        # Two ranks write to one file: a line may have both.
        found = re.findall(r"ready (\d+) (\d+)", self.output())
        return {int(rank): int(pid) for rank, pid in found}

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@pytest.mark.slow
def test_a_rank_that_sleeps_is_named(tmp_path):
    """Dumps and `hipress debug` name a rank that sleeps.

    Cost: torchrun and two ranks import PyTorch, and the timeout passes.
    """
    dumps = tmp_path / "dumps"
    with Ranks(tmp_path, "late", 8, HIPRESS_DEBUG_DIR=str(dumps)) as ranks:
        pids = ranks.pids()
        names = {f"hipress-{x}" for x in ("van", "cpu-0", "watch", "debug", "sched")}
        wait_until(lambda: names <= threads(pids[0]), 5, "threads with names")
        waits = re.compile(r"rank 1 has not pushed iteration .*; rank 0 waits for it")

        def named():
            """Ask for dumps again: rank 0 may not wait yet."""
            for pid in pids.values():
                os.kill(pid, signal.SIGUSR1)
            wait_for_dumps(dumps, 3)  # the process of rank 0 also has the scheduler
            asked = hipress("debug", dumps)
            return asked.returncode == 0 and waits.fullmatch(asked.stdout.splitlines()[1])

        wait_until(named, 7, "rank 1 to be named")
        dumps.rename(tmp_path / "first")  # those of the timeout may come at any time
        ranks.wait_for("failed: ", timeout=30)
        wait_for_dumps(dumps, 2)
        late = hipress("debug", dumps)
    assert "the job has failed: waited 8 s for rank 1 to push" in late.stdout, late.stdout
    assert "rank 1 has not pushed iteration " in late.stdout, late.stdout


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["one", "groups"])
def test_the_timeline_of_a_job(kind, tmp_path):
    """A PyTorch job writes a timeline of its steps and of each group.

    Cost: torchrun and two ranks import PyTorch.
    """
    with Ranks(tmp_path, kind, 30, HIPRESS_TIMELINE="job.json") as ranks:
        assert ranks.process.wait(150) == 0, ranks.output()
    files = sorted(tmp_path.glob("job*.json"))
    assert tmp_path / "job.json" in files and len(files) == (2 if kind == "groups" else 1), files
    for file in files:
        timeline = report.load(file)
        assert timeline.recorded and {s.node for s in timeline.spans} == {"worker 0", "worker 1"}
        operations = {span.op for span in timeline.spans}
        assert operations >= {"encode", "decode", "send", "receive", "gradient"}
        assert any(span.key.endswith("weight") for span in timeline.spans)
        assert len(timeline.steps()) == (4 if file.name == "job.json" else 3)
    done = hipress("report", "--no-picture", tmp_path / "job.json")
    assert done.returncode == 0 and "recorded, 2 nodes" in done.stdout, done.stderr
