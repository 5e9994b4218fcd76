"""Runs of tools/launch.py through mpirun and srun: real ones where they are installed, and fake
ones."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import sys

import pytest

from harness import slurm
from harness.launch import REPORT, STUBBORN, check_roles, launched, python, reports, run
from hipress.launch import mpi
from hipress.launch.hostfile import Host
from hipress.launch.job import JobSpec
from scripts import SCRIPTS

FAKE = SCRIPTS / "launch" / "fake_mpirun.py"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put a fake mpirun or srun on PATH. Return a function that reads the records of its calls."""

    def make(kind: str):
        version, variable, name = {
            "openmpi": ("mpirun (Open MPI) 4.1.4", "OMPI_COMM_WORLD_RANK", "mpirun"),
            "hydra": ("HYDRA build details:\n    Version: 4.0.2", "PMI_RANK", "mpirun"),
            "slurm": ("slurm 22.05.8", "SLURM_PROCID", "srun"),
            "other": ("some other MPI 1.0", "RANK", "mpirun"),
        }[kind]
        record = tmp_path / "record.jsonl"
        path = tmp_path / "bin" / name
        path.parent.mkdir()
        settings = {
            "version": version,
            "program": sys.executable,
            "record": str(record),
            "variable": variable,
            "to_all": kind == "slurm",
        }
        command = shlex.join([sys.executable, str(FAKE), json.dumps(settings)])
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return lambda: [json.loads(line) for line in record.read_text().splitlines()]

    return make


LAUNCHER_OF = {"openmpi": "mpi", "hydra": "mpi", "slurm": "slurm"}


@pytest.mark.parametrize("kind", ["openmpi", "hydra", "slurm"])
def test_mpirun_and_srun_run_every_role(fake, tmp_path, kind):
    record = fake(kind)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 slots=1\nlocalhost slots=2\n")
    launch = run(
        [
            "-n",
            "3",
            "-s",
            "2",
            "--launcher",
            LAUNCHER_OF[kind],
            "-H",
            str(hosts),
            "--env-worker",
            "T_WORKER:yes",
            *python(REPORT),
        ]
    )
    assert launch.process.returncode == 0, launch.err
    seen = reports(launch)
    check_roles(seen, 3, 2)
    assert "T_WORKER" not in seen["server 0"] and seen["worker 2"]["T_WORKER"] == "yes"
    calls = record()
    secret = seen["worker 0"]["HIPRESS_SECRET"]
    assert len(secret) == 64 and secret not in json.dumps(calls)
    arguments = sorted(" ".join(call["args"]) for call in calls)
    options = {
        "openmpi": "-np 1 --map-by slot:OVERSUBSCRIBE --bind-to none --host ",
        "hydra": "-np 1 -hosts ",
    }.get(kind)
    if options:
        assert arguments == sorted(
            f"{options}{host}" for host in ["127.0.0.1"] * 2 + ["localhost"] * 3
        )
    else:
        (arguments,), (call,) = arguments, calls
        assert arguments.startswith("--ntasks=5 --export=ALL ")
        assert "--nodelist=127.0.0.1,localhost --nodes=2 --distribution=arbitrary" in arguments
        assert call["hosts"] == ["127.0.0.1"] * 2 + ["localhost"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["openmpi", "hydra", "slurm"])
@pytest.mark.parametrize(
    ("then", "status", "text"),
    [
        ("sys.exit(4)", 4, "worker 1 exited with status 4 after "),
        ("os.kill(os.getpid(), 9)", 137, "worker 1 was killed by SIGKILL (signal 9) after "),
    ],
)
def test_mpirun_and_srun_name_the_dead(fake, kind, then, status, text):
    fake(kind)
    script = SCRIPTS / "launch" / "only.py"
    command = [*python(script), "DMLC_WORKER_ID", "1", then, "time.sleep(60)"]
    launch = run(["-n", "2", "-s", "1", "--launcher", LAUNCHER_OF[kind], *command])
    assert launch.process.returncode == status
    text = text.replace("1 ", f"1 on {socket.gethostname()} ", 1) if kind != "slurm" else text
    assert f"hipress-launch: {text}" in launch.err
    assert '"exit"' not in launch.out + launch.err  # reports of supervisors are not output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_mpirun_leaves_nothing(fake, number):
    fake("openmpi")
    with launched(
        ["-n", "1", "-s", "1", "--launcher", "mpi", "--grace", "0.5", *python(STUBBORN)]
    ) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(number)
        launch.finish(20.0)
        launch.gone(5.0)


def test_unknown_or_missing_mpirun(fake, monkeypatch, tmp_path):
    fake("other")
    launch = run(["-n", "1", "--launcher", "mpi", "true"])
    assert launch.process.returncode == 2
    assert (
        "is neither Open MPI's nor MPICH's (Hydra); its --version says 'some other MPI 1.0'"
        in launch.err
    )
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for launcher, name in (("mpi", "mpirun"), ("slurm", "srun")):
        launch = run(["-n", "1", "--launcher", launcher, "true"])
        assert launch.process.returncode == 2
        assert launch.err == (
            f"hipress-launch: --launcher {launcher} needs {name}, which is not on PATH here\n"
        )


def test_mpirun_that_fails_is_reported_in_one_sentence(monkeypatch, tmp_path):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 'mpirun (Open MPI) 4.1.4' && exit\n"
        "echo 'There are not enough slots.' >&2\nexit 1\n"
    )
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    launch = run(["-n", "3", "-s", "2", "--launcher", "mpi", "true"])
    assert launch.process.returncode == 2
    assert launch.err == (
        "hipress-launch: mpirun cannot start 3 processes: There are not enough slots.\n"
    )


def test_ranks_are_numbered_host_by_host():
    job = JobSpec(num_workers=3, num_servers=2, command=["true"])
    order = mpi.ranks_by_host(job, [Host("b"), Host("a", slots=2)])
    assert [(str(rank), host) for rank, host in order] == [
        ("server 0", "b"),
        ("worker 0", "b"),
        ("server 1", "a"),
        ("worker 1", "a"),
        ("worker 2", "a"),
    ]
    assert [host for _, host in mpi.ranks_by_host(job, [])] == [""] * 5


EXIT_6 = SCRIPTS / "launch" / "exit_6.py"


REPORT_OURS = SCRIPTS / "launch" / "report.py"


def check_real_jobs(launcher, env):
    """Check a job that succeeds, and one of which a worker fails."""
    launch = run(["-n", "2", "-s", "2", "--launcher", launcher, *python(REPORT_OURS)], env=env)
    assert launch.process.returncode == 0, launch.err
    check_roles(reports(launch), 2, 2)
    launch = run(["-n", "2", "-s", "1", "--launcher", launcher, *python(EXIT_6)], env=env)
    assert launch.process.returncode == 6
    where = f" on {socket.gethostname()}" if launcher == "mpi" else ""
    assert f"hipress-launch: worker 1{where} exited with status 6 after " in launch.err
    launch.gone(5.0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun is installed")
def test_real_mpirun():
    check_real_jobs("mpi", {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})


@pytest.mark.slow
@pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing())
def test_real_srun():
    with slurm.running() as env:
        check_real_jobs("slurm", env)
