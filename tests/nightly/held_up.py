"""Holds up all processes of random jobs, again and again: nobody is taken for dead. Minutes.

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
from hipress.casync import topologies

DEADLINE = 240
"""Seconds that a job may take."""

STORE = """
import hashlib, json, os
import numpy as np
from hipress.node import Node

settings = json.loads(os.environ["HELD_UP"])
node = Node()
node.set_gradient_compression({"type": settings["type"], "min_size": 1000})
sizes = settings["sizes"]
generator = np.random.default_rng(node.rank)
for key, size in enumerate(sizes):
    node.init_array(key, np.zeros(size, np.float32), f"layer{key}")
found = hashlib.sha256()
for step in range(settings["steps"]):
    outs = [np.zeros(size, np.float32) for size in sizes]
    pending = [node.pushpull(key, generator.standard_normal(out.size).astype(np.float32), out)
               for key, out in enumerate(outs)]
    for each in pending:
        each.wait(200)
    found.update(b"".join(out.tobytes() for out in outs))
    node.barrier()
print("result", found.hexdigest(), flush=True)
node.stop()
"""

RANK = """
import datetime, hashlib, json, os
import torch
import torch.distributed as dist
import hipress.torch

settings = json.loads(os.environ["HELD_UP"])
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
width = settings["width"]
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(settings["layers"])])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
options = dict(topology=settings["topology"], min_size=settings["min_size"], **settings["more"])
if settings["front"] == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    hipress.torch.compress(model, settings["type"], **options)
else:
    optimizer = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), settings["type"], **options)
torch.manual_seed(dist.get_rank())
for step in range(settings["steps"]):
    optimizer.zero_grad()
    model(torch.randn(4, width)).square().mean().backward()
    optimizer.step()
found = hashlib.sha256()
for p in model.parameters():
    found.update(p.detach().numpy().tobytes())
print("result", found.hexdigest(), flush=True)
dist.destroy_process_group()
"""


ELASTIC = [sys.executable, "-c", """
import hashlib, json, os
import torch
import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=5, timeout=60)

@elastic.run
def train(state):
    while state.step < json.loads(os.environ["HELD_UP"])["steps"]:
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()

train(state)
found = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print("result", state.epoch, found.hexdigest(), flush=True)
"""]


@contextlib.contextmanager
def held_up(job: Processes, dice: random.Random) -> Iterator[None]:
    """Stops a process of a job at a time, for at most 1.5 s, until the end of the block."""
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
    """What is played."""

    kind: str
    """A store, PyTorch's ranks, or an elastic job of theirs."""
    workers: int
    servers: int
    settings: dict[str, object]
    env: dict[str, str]
    dice: random.Random
    deadline: ClassVar[int] = DEADLINE

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """A random one."""
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
            front="ddp" if hosts else dice.choice(["ddp", "optimizer"]), more=hosts,
            width=dice.choice([32, 200, 700]), layers=dice.randint(1, 5), topology=topology,
            min_size=dice.choice([0, 16384]),
        )  # fmt: skip
        if not hosts and dice.random() < 0.3:  # what a step tries then ends with training, perhaps
            settings.update(type="auto", topology=None)
        return cls("torch", workers, 0, settings, env, dice)

    def __str__(self) -> str:
        told = ", ".join(f"{key}={value}" for key, value in {**self.settings, **self.env}.items())
        return f"{self.kind}, {self.workers} workers, {self.servers} servers, {told}"

    def start(self, env: dict[str, str]) -> Processes:
        """The job's processes."""
        if self.kind == "store":
            return Cluster(STORE, self.workers, self.servers, env, base=base_environment())
        if self.kind == "elastic":
            return ElasticJob(ELASTIC, self.workers, self.workers, env, heartbeat_ms=12000)
        return TorchJob([sys.executable, "-c", RANK], self.workers, base_environment(env))

    def play(self) -> list[str]:
        """Runs it; returns what was wrong."""
        with self.start({**self.env, "HELD_UP": json.dumps(self.settings)}) as job:
            with held_up(job, self.dice):
                end = time.monotonic() + self.deadline
                while job.running() and time.monotonic() < end:
                    time.sleep(0.05)
            still = job.running()
            statuses = {name: p.poll() for name, p in job.processes.items() if p.poll() != 0}
            results = {
                line for name in job.processes for line in job.output(name).splitlines()
                if line.startswith("result")
            }  # fmt: skip
            if still:
                return [f"{still} still run\n{job.report()}"]
            if statuses:
                return [f"ended with {statuses}\n{job.report()}"]
            return [] if len(results) == 1 else [f"results differ: {results}\n{job.report()}"]


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=40))
