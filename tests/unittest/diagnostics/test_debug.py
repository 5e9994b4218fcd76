"""Debugging a hang: dumps on a signal and after a timeout, and `hipress debug`, which reads
them."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cluster import Cluster, run_cluster
from harness.processes import base_environment, wait_until
from scripts import SCRIPTS

WORKER = SCRIPTS / "debug" / "late_worker.py"


def hipress(*arguments: object, env: dict | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hipress", *map(str, arguments)],
        env=base_environment(env),
        capture_output=True,
        text=True,
        timeout=60,
    )


def wait_for_dumps(folder: Path, count: int, timeout: float = 20) -> list[Path]:
    deadline = time.monotonic() + timeout
    while True:
        found = sorted(folder.glob("*.json")) if folder.is_dir() else []
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, f"only {found} after {timeout} s"
        time.sleep(0.05)


def asked_until(
    cluster: Cluster, folder: Path, count: int, text: str
) -> subprocess.CompletedProcess:
    """Request dumps until the output of `hipress debug` matches a regular expression, and return
    it. It takes time until other processes know of a call."""
    end = time.monotonic() + 40
    while True:
        for path in folder.glob("*.json") if folder.is_dir() else ():
            path.unlink()
        for name in cluster.processes:
            cluster.signal(name, signal.SIGUSR1)
        # A process that is still writing its last dump writes no other one: it gets another
        # request.
        with contextlib.suppress(AssertionError):
            wait_for_dumps(folder, count, 5)
        done = hipress("debug", folder)
        if re.search(text, done.stdout) or time.monotonic() > end:
            return done


ASK_NOW = SCRIPTS / "debug" / "ask_now.py"


def ask_now(folder: Path) -> subprocess.CompletedProcess:
    """Run `hipress debug --now` on processes that write to a folder; those of other tests are
    unaffected."""
    return subprocess.run(
        [sys.executable, str(ASK_NOW), str(folder)],
        env=base_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


def hanging(folder: Path, servers: int, late: int, **env: str) -> Cluster:
    """Start a job of three workers, one of which does not push two of three keys."""
    topology = {} if servers else {"HIPRESS_TOPOLOGY": "ring"}
    variables = {"HIPRESS_DEBUG_DIR": str(folder), "LATE": str(late), **topology, **env}
    cluster = Cluster(WORKER, workers=3, servers=servers, env=variables)
    for rank in range(3):
        cluster.wait_for(f"worker {rank}", "ready")
    return cluster


@pytest.mark.parametrize("servers", [0, 1])
def test_a_signal_makes_dumps_and_the_late_worker_is_named(servers, tmp_path):
    folder = tmp_path / "dumps"
    iteration = 3 if servers else 4  # without servers the first one sums the initial value
    waiting = "worker 0 and worker 2" if not servers else "server 0, worker 0 and worker 2"
    said = (
        f"worker 1 has not pushed iteration {iteration} of 'layer[12].weight' and of 1 more key; "
        f"{waiting} wait for it"
    )
    nodes = 4 + servers
    with hanging(folder, servers, late=1) as cluster:
        done = asked_until(cluster, folder, nodes, rf"\A.*\n{said}\n")
        assert len(cluster.running()) == nodes
        assert folder.stat().st_mode & 0o777 == 0o700
        cluster.wait_for("worker 0", "what it waits for is in")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stdout.splitlines()
    assert f"3 workers{' and 1 server' if servers else ''}; {nodes} dumps" in first
    assert re.fullmatch(said, second), second
    assert re.search(r"layer2.weight +\d .*worker 1 has not pushed", done.stdout)
    assert "layer0.weight" not in done.stdout.split("nodes")[0]


@pytest.mark.slow
def test_a_timeout_makes_dumps_of_all_nodes(tmp_path):
    folder = tmp_path / "dumps"
    with hanging(folder, 0, late=2, HIPRESS_TIMEOUT="3") as cluster:
        cluster.wait_for("worker 0", "failed: waited 3 s for worker 2 to push", 30)
        wait_for_dumps(folder, 3)
        done = hipress("debug", folder, "--events", 200)
    assert done.returncode == 0, done.stderr
    said = "worker 2 has not pushed iteration 4 of 'layer[12].weight' and of 1 more key"
    assert re.search(said, done.stdout), done.stdout
    assert "of the scheduler there is no dump" in done.stdout
    events = done.stdout.split("last events of worker 2")[1]
    assert re.search(r"receive done \(worker [01]\), 'layer0.weight' iteration 4", events)


def test_asking_now(tmp_path):
    folder = tmp_path / "dumps"
    with hanging(folder, 0, late=0) as cluster:

        def asked():
            done = ask_now(folder)
            assert done.returncode == 0, done.stderr
            return "worker 0 has not pushed" in done.stdout

        wait_until(asked, 40, "worker 0 to be named")
        assert len(cluster.running()) == 4


def threads(pid: int) -> set[str]:
    return {path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/comm")}


def test_threads_have_names(tmp_path):
    with hanging(tmp_path, 0, late=1, HIPRESS_NUM_THREADS="2") as cluster:
        found = threads(cluster.processes["worker 0"].pid)
        assert {f"hipress-{x}" for x in ("van", "cpu-0", "cpu-1", "watch", "debug")} <= found
        assert {"hipress-van", "hipress-debug"} <= threads(cluster.processes["scheduler"].pid)


CALLS = SCRIPTS / "debug" / "missing_call.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("barrier", "has not come to the barrier of workers 1"),
        ("init", "has not begun to initialize key 'second'"),
    ],
)
@pytest.mark.parametrize("servers", [0, 1])
def test_who_does_not_make_a_call_is_named(call, what, servers, tmp_path):
    env = {"HIPRESS_DEBUG_DIR": str(tmp_path), "CALL": call}
    with Cluster(CALLS, workers=3, servers=servers, env=env) as cluster:
        for rank in range(3):
            cluster.wait_for(f"worker {rank}", "ready")
        said = f"worker 1 {what}; worker 0 and worker 2 wait for it"
        done = asked_until(cluster, tmp_path, 4 + servers, re.escape(said))
    assert said in done.stdout, done.stdout


def test_a_pull_that_servers_do_not_answer(tmp_path):
    env = {"HIPRESS_DEBUG_DIR": str(tmp_path), "CALL": "pull"}
    with Cluster(CALLS, workers=2, servers=1, env=env) as cluster:
        for rank in range(2):
            cluster.wait_for(f"worker {rank}", "ready")
        said = "worker 1 has not pushed iteration 1 of 'first'; server 0 and worker 0 wait for it"
        done = asked_until(cluster, tmp_path, 4, rf"\n{said}\n(.*\n)*.*a pull of first")
    assert done.stdout.splitlines()[1] == said, done.stdout
    assert "a pull of first" in done.stdout


def test_who_is_missing_at_the_start_is_named(tmp_path):
    env = {"HIPRESS_DEBUG_DIR": str(tmp_path), "DMLC_NUM_WORKER": "3", "CALL": "barrier"}
    with Cluster(CALLS, workers=2, servers=0, env=env) as cluster:
        for name in cluster.processes:
            deadline = time.monotonic() + 30
            while "hipress-debug" not in threads(cluster.processes[name].pid):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        said = "the job has not started: it waits for 1 of 3 workers (rank 2)"
        done = asked_until(cluster, tmp_path, 3, rf"\n{re.escape(said)}\n")
    assert done.stdout.splitlines()[1] == said, done.stdout
    assert "a worker (process " in done.stdout


HANDLERS = SCRIPTS / "debug" / "own_handler.py"


def test_a_programs_own_handler_is_called_and_a_forked_child_dumps_nothing(tmp_path):
    results = run_cluster(HANDLERS, 1, 1, env={"HIPRESS_DEBUG_DIR": str(tmp_path)})
    assert "kept" in results[-1].output


SETTINGS = SCRIPTS / "debug" / "signal_settings.py"


def test_without_a_signal_it_keeps_its_meaning(tmp_path):
    env = {"HIPRESS_DEBUG_SIGNAL": "none", "HIPRESS_FLIGHT_RECORDER": "0"}
    env["HIPRESS_DEBUG_DIR"] = str(tmp_path)
    results = run_cluster(SETTINGS, 1, 0, env=env, check=False)
    assert results[-1].returncode == -signal.SIGUSR1
    assert not list(tmp_path.iterdir())


def test_a_wrong_signal_is_one_sentence():
    results = run_cluster(SETTINGS, 1, 0, env={"HIPRESS_DEBUG_SIGNAL": "KILL"}, check=False)
    assert "HIPRESS_DEBUG_SIGNAL is 'KILL', but must be" in results[0].output


def test_a_folder_that_others_can_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    env = {"HIPRESS_DEBUG_DIR": str(tmp_path), "HIPRESS_FLIGHT_RECORDER": "0"}
    with Cluster(SETTINGS, workers=1, servers=0, env=env) as cluster:
        said = "it can be written by other users; HIPRESS_DEBUG_DIR names another"
        cluster.wait_for("worker 0", said)
    assert not list(tmp_path.iterdir())


def test_no_dump_is_one_sentence(tmp_path):
    done = hipress("debug", env={"HIPRESS_DEBUG_DIR": str(tmp_path)})
    assert done.returncode == 1 and "there is no dump in" in done.stderr
    (tmp_path / "x.json").write_text(json.dumps({"format": "else"}))
    done = hipress("debug", tmp_path)
    assert done.returncode == 1 and "x.json is no dump of a HiPress node" in done.stderr
    assert len(done.stderr.splitlines()) == 1
