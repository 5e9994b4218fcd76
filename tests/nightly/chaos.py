"""Kills, stops or terminates a random process of random jobs, at a random moment. Minutes.

Not for CI. Whatever happens, and whenever: every survivor ends by itself within its deadline, in
order (no crash, no traceback but a HipressError), and, if the job was running, names the victim.
What workers received before was right.

    python tests/nightly/chaos.py --jobs 50 --seed 1
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from dataclasses import dataclass

import havoc  # first: it finds the tests' modules

from cluster import Cluster

SERVE = """
import os
from hipress.node import Node

node = Node()
if node.role == "server" and os.environ["CHAOS_OPTIMIZER"]:
    node.set_updater(lambda key, name, gradient, weight: weight.__iadd__(gradient))
node.serve()
"""
SERVER = (sys.executable, "-c", SERVE)
START_TIMEOUT = 10
DEADLINE = START_TIMEOUT + 15
SERVERLESS = ("colocated", "ring", "tree", "butterfly", "star")
TYPES = ("none", "2bit", "onebit", "maxmin", "dgc", "topk", "fp16")
SIZES = (1, 10, 5_000, 70_000, 1_000_000)

WORKER = """
import json, os
import numpy as np
from hipress.node import HipressError, Node

node = None
try:
    node = Node()
    settings = json.loads(os.environ["CHAOS"])
    node.set_gradient_compression(settings["compression"])
    keys = {}
    for key, size in enumerate(settings["sizes"]):
        keys[key] = np.ones(size, np.float32), np.zeros(size, np.float32)
        node.init_array(key, np.zeros(size, np.float32))
    print("running", flush=True)
    for step in range(settings["steps"]):
        waiting = [node.pushpull(key, *arrays) for key, arrays in keys.items()]
        for each in waiting:
            each.wait(30)
        exact = settings["compression"]["type"] in ("none", "fp16")
        if exact and not os.environ["CHAOS_OPTIMIZER"]:
            for gradient, total in keys.values():
                assert (total == node.num_workers).all(), total
    node.stop()
    print("done", flush=True)
except HipressError as error:
    print("failed:", error, flush=True)
    if node:
        node.abort()
"""


@dataclass
class Job:
    """What is played."""

    workers: int
    servers: int
    topology: str
    compression: dict[str, str]
    sizes: list[int]
    steps: int
    optimizer: bool
    """In Python, on the servers."""
    strike: havoc.Strike

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """A random one."""
        workers = dice.randint(2, 5)
        servers = dice.choice([0, 1, 2, 3])
        victims = ["scheduler", *(f"worker {i}" for i in range(workers))]
        victims += [f"server {i}" for i in range(servers)]
        running = dice.random() < 0.6
        return cls(
            workers,
            servers,
            "ps" if servers else dice.choice(SERVERLESS),
            {"type": dice.choice(TYPES), "min_size": "0"},
            [dice.choice(SIZES) for _ in range(dice.randint(1, 12))],
            dice.choice([3, 30, 1_000_000]),
            dice.random() < 0.4,
            havoc.Strike(
                dice.choice(victims),
                dice.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]),
                dice.uniform(0, 1 if running else 3),
                running,
            ),
        )

    def __str__(self) -> str:
        return (
            f"{self.workers} workers, {self.servers} servers, {self.topology}, "
            f"{self.compression['type']}, {len(self.sizes)} keys; {self.strike}"
        )

    def play(self) -> list[str]:
        """Runs it; returns what was wrong."""
        settings = {"compression": self.compression, "sizes": self.sizes, "steps": self.steps}
        env = {
            "CHAOS": json.dumps(settings),
            "CHAOS_OPTIMIZER": "1" if self.optimizer else "",
            "HIPRESS_TOPOLOGY": self.topology,
            "HIPRESS_START_TIMEOUT": str(START_TIMEOUT),
        }
        with Cluster(
            WORKER, self.workers, self.servers, env=env, server_command=SERVER
        ) as cluster:
            if self.strike.running:
                try:
                    for rank in range(self.workers):
                        cluster.wait_for(f"worker {rank}", "running", timeout=60)
                except AssertionError as error:
                    return [f"it did not start: {error}"]
            time.sleep(self.strike.after)
            trained = self.strike.running and self.strike.victim in cluster.running()
            done_before = "done" in "".join(
                cluster.output(f"worker {rank}") for rank in range(self.workers)
            )
            cluster.signal(self.strike.victim, self.strike.number)
            deadline = time.monotonic() + DEADLINE
            while set(cluster.running()) - {self.strike.victim} and time.monotonic() < deadline:
                time.sleep(0.02)
            wrong = self._judge(cluster, trained and not done_before)
            return [f"{each}\n{cluster.report()}" for each in wrong[:1]]

    def _judge(self, cluster: Cluster, must_name: bool) -> list[str]:
        late = set(cluster.running()) - {self.strike.victim}
        wrong = [f"{name} still runs" for name in sorted(late)]
        victim = "the scheduler" if self.strike.victim == "scheduler" else self.strike.victim
        for name, process in cluster.processes.items():
            if name == self.strike.victim or name in late:
                continue
            if process.returncode < 0:
                wrong.append(f"{name} crashed with signal {-process.returncode}")
            output = cluster.output(name)
            if "Traceback" in output and "HipressError" not in output:
                wrong.append(f"{name} ended with a traceback")
            if name.startswith("worker") and must_name and "done" not in output:
                lines = [line for line in output.splitlines() if line.startswith("failed:")]
                if not lines or victim not in lines[0]:
                    wrong.append(f"{name} does not name {victim}: {lines}")
        return wrong


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=50))
