"""Elastic launcher with a real mpirun or srun for each worker."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import slurm
from harness.launch import Launch, launched, marked, python, run
from harness.launch_elastic import WORKER, alive, arguments, supervisor_of, ups
from harness.processes import wait_until
from hipress.launch import mpi
from hipress.launch.hostfile import Host
from hipress.launch.job import Elastic, JobSpec
from hipress.launch.launch_error import LaunchError

pytestmark = pytest.mark.usefixtures("own_folder")

SECRET = "a secret that no command line shows"


@dataclass(frozen=True)
class Means:
    """Means of starting workers: options of the launcher and its environment."""

    name: str
    options: list[str]
    env: dict[str, str]

    @property
    def place(self) -> str:
        return "127.0.0.1" if self.name == "mpirun" else self.env["SLURM_JOB_NODELIST"]


@pytest.fixture(scope="module", params=["mpirun", "srun"])
def means(request, tmp_path_factory) -> Iterator[Means]:
    if request.param == "mpirun":
        if shutil.which("mpirun") is None:
            pytest.skip("no mpirun is installed")
        hosts = tmp_path_factory.mktemp("mpi") / "hosts"
        hosts.write_text("127.0.0.1 slots=8\n")
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        yield Means("mpirun", ["--launcher", "mpi", "-H", str(hosts)], env)
        return
    if slurm.missing():
        pytest.skip(slurm.missing())
    # What sbatch's options leave in the environment must not reach the steps.
    with slurm.running() as env, slurm.allocation(env, "--ntasks-per-node=4") as inside:
        yield Means("srun", ["--launcher", "slurm"], {**env, **inside})


def said(launch: Launch) -> list[str]:
    """Return its lines on stderr, without what this Slurm prints about each step."""
    return [line for line in launch.err.splitlines() if "lacks support for cpu binding" not in line]


def test_a_killed_worker_is_started_again_in_its_slot(means, tmp_path):
    command = arguments(3, *means.options, *python(WORKER))
    with launched(command, env=means.env, cwd=tmp_path) as launch:
        first = ups(launch, 3)
        os.kill(first[1][2], signal.SIGKILL)
        (again,) = ups(launch, 1)
        assert again[:2] == (1, 1) and again[3] == first[1][3] and again[2] != first[1][2]
        assert alive(first[0][2]) and alive(first[2][2])
        (tmp_path / "end").touch()
        assert launch.finish(30.0) == 0
        launch.gone(5.0)
    end = f"worker 1 on {means.place} was killed by SIGKILL (signal 9)"
    assert said(launch) == [f"hipress-launch: {end}; restart 1 of 3"]


def test_used_up_restarts_end_the_job_in_one_sentence(means, tmp_path):
    options = ["--min-workers", "2", "--max-restarts", "2", *means.options]
    launch = run(
        arguments(2, *options, *python(WORKER)),
        env={**means.env, "DIE": "1", "STATUS": "7"},
        cwd=tmp_path,
    )
    who = f"worker 1 on {means.place} exited with status 7"
    assert launch.process.returncode == 7
    assert launch.out.count("up 1 ") == 3
    assert said(launch) == [
        f"hipress-launch: {who}; restart 1 of 2",
        f"hipress-launch: {who}; restart 2 of 2",
        "hipress-launch: 1 of 2 workers can still run, fewer than --min-workers 2: "
        f"{who}; stopping the job",
    ]


def test_ctrl_c_leaves_no_process(means, tmp_path):
    with launched(
        arguments(3, *means.options, *python(WORKER)), env=means.env, cwd=tmp_path
    ) as launch:
        ups(launch, 3)
        launch.process.send_signal(signal.SIGINT)
        assert launch.finish(30.0) == 130
        launch.gone(5.0)
    assert said(launch) == ["hipress-launch: SIGINT; stopping the job"]


@pytest.mark.slow
def test_workers_survive_the_launcher(means, tmp_path):
    with launched(
        arguments(2, *means.options, *python(WORKER)), env=means.env, cwd=tmp_path
    ) as launch:
        found = ups(launch, 2)
        if means.name == "mpirun":
            # Sometimes, as an mpirun whose output has lost its reader.
            os.kill(supervisor_of(found[0][2]), signal.SIGTERM)
        launch.process.kill()
        launch.process.wait()
        launch.process.stdout.close()
        launch.process.stdout = None
        time.sleep(1.5)  # they write all the time
        assert all(alive(pid) for _, _, pid, _ in found)
        (tmp_path / "end").touch()
        launch.gone(10.0)


@pytest.mark.slow(keep=1)
def test_a_lost_supervisor(means, tmp_path):
    """A worker that loses its supervisor is left by mpirun, so the launcher can still end it; Slurm
    ends it with its step."""
    with launched(
        arguments(2, *means.options, *python(WORKER)), env=means.env, cwd=tmp_path
    ) as launch:
        found = ups(launch, 2)
        os.kill(supervisor_of(found[0][2]), signal.SIGKILL)
        if means.name == "srun":
            (again,) = ups(launch, 1)
            assert again[:2] == (0, 1)
            wait_until(lambda: not alive(found[0][2]), 5.0, "the first worker's end")
        else:
            lines = iter(launch.process.stderr.readline, b"")
            lost = b"hipress-launch: the connection to worker 0 on 127.0.0.1 has ended (mpirun "
            assert any(line.startswith(lost) for line in lines)
            assert alive(found[0][2])
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(30.0) == 143
        launch.gone(5.0)


def test_no_secret_is_on_a_command_line(means, tmp_path):
    command = arguments(1, *means.options, "--env", "HIPRESS_SECRET", *python(WORKER))
    with launched(command, env={**means.env, "HIPRESS_SECRET": SECRET}, cwd=tmp_path) as launch:
        ups(launch, 1)
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked(launch.mark)]
        (tmp_path / "end").touch()
        assert launch.finish(30.0) == 0
    assert any(means.name.encode() in line for line in lines)
    assert not any(SECRET.encode() in line for line in lines)


def test_a_command_that_is_not_there_is_not_tried_again(means):
    launch = run(arguments(1, *means.options, "no-such-command-anywhere"), env=means.env)
    assert launch.process.returncode == 127
    assert "cannot run 'no-such-command-anywhere'" in launch.err
    assert "restart 1" not in launch.err


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("mpirun (Open MPI) 4.1.4", [*mpi.OPEN_MPI, "--host", "a"]),
        ("HYDRA build details:", ["-hosts", "a"]),
    ],
)
def test_each_worker_has_an_mpirun(monkeypatch, tmp_path, version, options):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho '{version}'\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    job = JobSpec(num_workers=3, num_servers=0, command=["true"], elastic=Elastic(["a:1"] * 3, 1))
    tasks = mpi.tasks(job, [Host("u@a", slots=2), Host("b")], "/", "mpi")
    assert [task.name for task in tasks] == ["worker 0", "worker 1", "worker 2"]
    assert tasks[0].via[:-5] == [str(mpirun), "-np", "1", *options]
    assert [task.via[-6] for task in tasks] == ["a", "a", "b"]
    assert not any(job.secret in argument for task in tasks for argument in task.via)


def test_outside_an_allocation(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(LaunchError, match="run it inside an allocation, from sbatch or salloc"):
        mpi.in_allocation([Host("a")], 2)


@pytest.mark.parametrize(("workers", "slots"), [(2, [1, 1]), (5, [2, 2, 1]), (6, [2, 2, 2])])
def test_workers_are_spread_over_an_allocation(monkeypatch, tmp_path, workers, slots):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] && echo n1 n2 n3\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    found = mpi.in_allocation([], workers)
    assert found == [Host(f"n{i + 1}", slots=count) for i, count in enumerate(slots)]
    assert mpi.in_allocation([Host("n3")], workers) == [Host("n3")]
