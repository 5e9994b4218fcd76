"""Elastic training and torchrun: one inside the launcher for each worker, or torchrun alone."""

from __future__ import annotations

import re
import sys

import pytest

from harness.launch import launched
from harness.launch_elastic import arguments
from harness.processes import Processes, base_environment
from scripts import SCRIPTS

pytest.importorskip("torch")

SCRIPT = str(SCRIPTS / "torch_elastic_torchrun.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [0, 3], ids=["the launcher restarts", "torchrun restarts"])
def test_a_torchrun_for_each_worker(tmp_path, restarts):
    """Survivors continue with a torchrun for each worker, and the launcher or torchrun restarts the
    dead worker.

    Cost: Each torchrun and each worker import PyTorch, and one of both starts again.
    """
    command = [*TORCHRUN, "1", "--max-restarts", str(restarts), SCRIPT, "die"]
    env = base_environment()
    with launched(arguments(2, *command), env=env, cwd=tmp_path) as launch:
        assert launch.finish(240.0) == 0, launch.err
        launch.gone(5.0)
    assert ("restart 1 of 3" in launch.err) == (restarts == 0)
    views = re.findall(r"\[worker 0\] view of (\d) after step (\d+)", launch.out)
    assert [size for size, _ in views] == ["2", "1", "2"]
    assert int(views[2][1]) >= 3
    assert launch.out.count("trained to step") == 2


@pytest.mark.slow
def test_torchrun_alone():
    """An elastic script trains under one torchrun for all workers.

    Cost: torchrun and two workers import PyTorch.
    """
    with Processes() as job:
        job.start("torchrun", [*TORCHRUN, "2", SCRIPT], base_environment())
        job.wait(240, succeed=True)
        assert len(re.findall("trained to step 6 on 2", job.output("torchrun"))) == 2


@pytest.mark.slow
def test_torchrun_alone_restarts_all_together():
    """A death restarts all workers if they share one torchrun.

    Cost: torchrun and two workers import PyTorch, and the workers start twice.
    """
    with Processes() as job:
        command = [*TORCHRUN, "2", "--max-restarts", "1", SCRIPT, "die"]
        job.start("torchrun", command, base_environment())
        job.wait(240, succeed=True)
        output = job.output("torchrun")
        assert len(re.findall("view of 2 after step 0", output)) == 4
        assert len(re.findall("trained to step 100 on 2", output)) == 2


def test_no_launcher_at_all():
    env = {name: value for name, value in base_environment().items() if "HIPRESS_EL" not in name}
    with Processes() as job:
        job.start("alone", [sys.executable, SCRIPT], env)
        job.wait(120)
        assert job.output("alone").splitlines()[-1] == (
            "hipress.elastic.ElasticError: environment variable HIPRESS_ELASTIC_AGENTS is not set: "
            "start the job with 'hipress launch --elastic -n WORKERS python SCRIPT' (or with "
            "torchrun, which restarts all together)"
        )


@pytest.mark.slow
def test_a_store_that_is_not_there():
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    code = "import hipress.torch.elastic.torchrun as torchrun; torchrun.environment(1.0)"
    with Processes() as job:
        job.start("rank 1", [sys.executable, "-c", code], base_environment(env))
        job.wait(120)
        last = job.output("rank 1").splitlines()[-1]
        assert last.startswith(
            "hipress.elastic.ElasticError: rank 1 could not exchange addresses over torchrun's "
            "store at 127.0.0.1:9: "
        )
