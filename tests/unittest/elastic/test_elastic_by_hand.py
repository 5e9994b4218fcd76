"""Elastic workers without a launcher: started one by one, with the documented variables alone."""

from __future__ import annotations

import os
import re
import secrets
import sys

import pytest

from harness import ROOT, netns
from harness.marks import needs_namespaces
from harness.processes import Processes, free_port
from scripts import SCRIPTS

pytest.importorskip("torch")

PROGRAM = SCRIPTS / "elastic_until_end.py"
WORKERS = 3


class ByHand(Processes):
    """Workers with no environment variables except those that the reference lists."""

    def __init__(self, network: netns.ShapedNetwork | None = None, **env: str) -> None:
        super().__init__(network)
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "python"),
            "HIPRESS_SECRET": secrets.token_hex(32),
            # A name, as Kubernetes gives them.
            "HIPRESS_ELASTIC_AGENTS": ",".join(f"localhost:{free_port()}" for _ in range(WORKERS)),
            "HIPRESS_ELASTIC_MIN_WORKERS": "2",
            **env,
        }

    def worker(self, name: str, slot: int, **env: str) -> None:
        """Start a process in a slot."""
        own = {**self.env, "HIPRESS_ELASTIC_SLOT": str(slot), **env}
        self.start(name, [sys.executable, str(PROGRAM)], own)

    def all_train(self, names: list[str]) -> None:
        """Wait until these workers have trained together."""
        for name in names:
            self.wait_for(name, f"view of {len(names)} after")
        for name in names:
            self.wait_for(name, "five steps")

    def end(self, names: list[str]) -> list[int]:
        """End training; check that it ends well on these workers; return their last steps."""
        (self.path / "end").touch()
        self.wait(120)
        assert all(self.processes[name].returncode == 0 for name in names), self.report()
        found = [re.search(r"trained to step (\d+) on 3", self.output(name)) for name in names]
        assert all(found), self.report()
        return [int(each[1]) for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False], ids=["restarts are counted", "nobody counts"])
def test_a_worker_is_killed_and_started_again(counted):
    """Workers that no launcher starts continue after a death, and a restarted worker joins.

    Cost: Three processes train, and one starts again.
    """

    def count(restarts: int) -> dict[str, str]:
        return {"HIPRESS_ELASTIC_RESTART": str(restarts)} if counted else {}

    with ByHand() as job:
        for slot in range(WORKERS):
            job.worker(f"worker {slot}", slot, **count(0))
        job.all_train(["worker 0", "worker 1", "worker 2"])
        job.signal("worker 1")
        job.wait_for("worker 0", "view of 2 after")
        job.worker("worker 1 again", 1, **count(1))
        job.all_train(["worker 0", "worker 1 again", "worker 2"])
        (step,) = set(job.end(["worker 0", "worker 1 again", "worker 2"]))
        assert step >= 10


@pytest.mark.slow
def test_all_are_killed_and_begin_anew():
    """A job starts again after all workers are killed: no process counts restarts, so none needs
    one that remembers the job."""
    names = [f"worker {slot}" for slot in range(WORKERS)]
    with ByHand() as job:
        for slot, name in enumerate(names):
            job.worker(name, slot)
        job.all_train(names)
        for name in names:
            job.signal(name)
        for slot, name in enumerate(names):
            job.processes[name].wait(10)
            job.worker(f"{name} again", slot)
        again = [f"{name} again" for name in names]
        job.all_train(again)
        assert "view of 3 after step 0" in job.output("worker 0 again")
        (step,) = set(job.end(again))
        assert step >= 5


class OnTwoMachines(ByHand):
    """Two workers on host 0 and one on host 1. On each host its own name means loopback."""

    def __init__(self, network: netns.ShapedNetwork) -> None:
        agents = "machine0:29700,machine0:29701,machine1:29700"
        super().__init__(network, HIPRESS_ELASTIC_AGENTS=agents)
        for mine in (0, 1):
            known = {f"machine{node}": network.address(node) for node in (0, 1)}
            known |= {"localhost": "127.0.0.1", f"machine{mine}": "127.0.1.1"}
            lines = [f"{address} {name}\n" for name, address in known.items()]
            (self.path / f"hosts{mine}").write_text("".join(lines))

    def worker(self, name: str, slot: int, **env: str) -> None:
        node = slot // 2
        own = {**self.env, "HIPRESS_ELASTIC_SLOT": str(slot), **env}
        see = f"mount --bind hosts{node} /etc/hosts && exec {sys.executable} {PROGRAM}"
        self.start(name, ["unshare", "--mount", "sh", "-c", see], own, node)


@pytest.mark.slow
@needs_namespaces
def test_machines_whose_own_names_mean_loopback():
    """Elastic workers on two hosts find each other although each host's name means loopback
    there.

    Cost: Three processes import PyTorch without being forked, because each mounts its own
    /etc/hosts; one starts again.
    """
    names = [f"worker {slot}" for slot in range(WORKERS)]
    with netns.ShapedNetwork(2, rate=None) as network, OnTwoMachines(network) as job:
        for slot, name in enumerate(names):
            job.worker(name, slot)
        job.all_train(names)
        job.signal("worker 1")
        job.wait_for("worker 0", "view of 2 after")
        job.worker("worker 1 again", 1)
        job.all_train(["worker 0", "worker 1 again", "worker 2"])
        (step,) = set(job.end(["worker 0", "worker 1 again", "worker 2"]))
        assert step >= 10


@pytest.mark.slow
def test_the_secret_is_missing():
    with ByHand(HIPRESS_SECRET="") as job:
        job.worker("worker 0", 0)
        job.wait(120)
        last = job.output("worker 0").splitlines()[-1]
        assert last.startswith("hipress.elastic.ElasticError: environment variable HIPRESS_SECRET")


def test_the_example_of_the_guide_names_these_variables():
    guide = (ROOT / "docs/guides/start-elastic-jobs.md").read_text()
    example = guide[guide.index("$ export HIPRESS_SECRET") :].split("```")[0]
    with ByHand() as job:
        used = {name for name in job.env if name.startswith("HIPRESS_")}
    assert set(re.findall(r"HIPRESS_\w+", example)) == {*used, "HIPRESS_ELASTIC_SLOT"}
