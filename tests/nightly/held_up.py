"""Suspends all processes of random jobs repeatedly; none may be taken for dead. Takes minutes.

Not for CI. On a machine that is short of processors or memory a process may not run for a second or
two, at any moment. That is no failure: the job must end with 0 everywhere, and with the same
results on all workers.

    python tests/nightly/held_up.py --jobs 20 --seed 1
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import havoc  # first: it finds the harness

from harness.cluster import Cluster
from harness.elastic import ElasticJob
from harness.processes import Processes, base_environment
from harness.torch_job import TorchJob
from hipress.topology import topologies

DEADLINE = 240
"""Seconds that a job may take."""

STORE = havoc.SCRIPTS / "held_up_store.py"

RANK = havoc.SCRIPTS / "held_up_torch.py"


ELASTIC = [sys.executable, str(havoc.SCRIPTS / "held_up_torch_elastic.py")]


@contextlib.contextmanager
def held_up(job: Processes, dice: random.Random) -> Iterator[None]:
    """Stop a process of a job at a time, for at most 1.5 s, until the end of the block."""
    over = threading.Event()

    def hold_up() -> None:
        while not over.is_set():
            victim = dice.choice(list(job.processes.values()))
            if victim.poll() is None:
                victim.send_signal(signal.SIGSTOP)
                over.wait(dice.choice([0.001, 0.1, 0.5, 1.5]))
                victim.send_signal(signal.SIGCONT)
            over.wait(dice.choice([0.001, 0.02, 0.1]))

    thread = threading.Thread(target=hold_up)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass
class Job:
    """Random job that is run once."""

    kind: str
    """Kind of job: a key-value store, PyTorch ranks, or an elastic PyTorch job."""
    workers: int
    servers: int
    settings: dict[str, object]
    env: dict[str, str]
    dice: random.Random
    deadline: ClassVar[int] = DEADLINE

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """Draw a random job."""
        workers = dice.randint(2, 4)
        codec = dice.choice(["none", "onebit", "maxmin", "dgc"])
        settings = {"type": codec, "steps": dice.randint(1, 30)}
        env = {
            "HIPRESS_TLS": dice.choice(["auto", "on"]),
            "HIPRESS_STREAMS": dice.choice(["0", "3"]),
            "HIPRESS_SHARED_MEMORY": dice.choice(["auto", "off"]),
        }
        servers = dice.choice([None, None, None, 0, 1, 2])  # None: PyTorch's ranks
        if servers is None and dice.random() < 0.25:
            return cls("elastic", workers, 0, {"steps": 100 * dice.randint(1, 3)}, env, dice)
        topology = dice.choice([t for t in topologies.names() if servers is None or t != "ps"])
        hosts = {}
        if topologies.TOPOLOGIES[topology].needs_devices_per_host:
            shared = dice.choice([d for d in range(1, workers + 1) if workers % d == 0])
            hosts = {"devices_per_host": shared}
        if servers is not None:
            sizes = [10, 3000, 300_000]
            settings["sizes"] = [dice.choice(sizes) for _ in range(dice.randint(1, 5))]
            if not servers:
                env["HIPRESS_TOPOLOGY"] = topology
                env.update((f"HIPRESS_{name.upper()}", str(d)) for name, d in hosts.items())
            return cls("store", workers, servers, settings, env, dice)
        settings.update(
            front="ddp" if hosts else dice.choice(["ddp", "optimizer"]),
            more=hosts,
            width=dice.choice([32, 200, 700]),
            layers=dice.randint(1, 5),
            topology=topology,
            min_size=dice.choice([0, 16384]),
        )
        if not hosts and dice.random() < 0.3:  # what a step tries then ends with training, perhaps
            settings.update(type="auto", topology=None)
        return cls("torch", workers, 0, settings, env, dice)

    def __str__(self) -> str:
        told = ", ".join(f"{key}={value}" for key, value in {**self.settings, **self.env}.items())
        return f"{self.kind}, {self.workers} workers, {self.servers} servers, {told}"

    def start(self, env: dict[str, str]) -> Processes:
        """Start the job's processes."""
        if self.kind == "store":
            return Cluster(STORE, self.workers, self.servers, env, base=base_environment())
        if self.kind == "elastic":
            return ElasticJob(ELASTIC, self.workers, self.workers, env, heartbeat_ms=12000)
        return TorchJob([sys.executable, str(RANK)], self.workers, base_environment(env))

    def play(self) -> list[str]:
        """Run the job; return what was wrong."""
        with self.start({**self.env, "HELD_UP": json.dumps(self.settings)}) as job:
            with held_up(job, self.dice):
                end = time.monotonic() + self.deadline
                while job.running() and time.monotonic() < end:
                    time.sleep(0.05)
            still = job.running()
            statuses = {name: p.poll() for name, p in job.processes.items() if p.poll() != 0}
            results = {
                line
                for name in job.processes
                for line in job.output(name).splitlines()
                if line.startswith("result")
            }
            if still:
                return [f"{still} still run\n{job.report()}"]
            if statuses:
                return [f"ended with {statuses}\n{job.report()}"]
            return [] if len(results) == 1 else [f"results differ: {results}\n{job.report()}"]


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=40))
