"""Kills, stops or terminates a random process of random jobs, at a random moment. Minutes.

Not for CI. Whatever happens, and whenever: every survivor ends by itself within its deadline, in
order (no crash, no traceback but a HipressError), and, if the job was running, names the victim.
What workers received before was right. A process that was only stopped for a while ends as well:
its job goes on or fails. A second job on the same network notices nothing.

    python tests/nightly/chaos.py --jobs 50 --seed 1
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import sys
import time
from dataclasses import dataclass

import havoc  # first: it finds the harness

from harness.cluster import Cluster
from harness.processes import JobTimeout
from hipress.topology import topologies

SERVE = havoc.SCRIPTS / "chaos_server.py"
SERVER = (sys.executable, str(SERVE))
START_TIMEOUT = 10
DEADLINE = START_TIMEOUT + 15
SERVERLESS = topologies.names(servers=False)
TYPES = ("none", "2bit", "onebit", "maxmin", "dgc", "topk", "fp16")
SIZES = (1, 10, 5_000, 70_000, 1_000_000)

WORKER = havoc.SCRIPTS / "chaos_worker.py"


@dataclass
class Job:
    """Random job that is run once."""

    workers: int
    servers: int
    topology: str
    compression: dict[str, str]
    sizes: list[int]
    steps: int
    optimizer: bool
    """Whether the optimizer runs in Python, on the servers."""
    strike: havoc.Strike
    neighbor: bool
    """Whether a second job runs on the same machine."""

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """Draw a random job."""
        workers = dice.randint(2, 5)
        servers = dice.choice([0, 1, 2, 3])
        victims = ["scheduler", *(f"worker {i}" for i in range(workers))]
        victims += [f"server {i}" for i in range(servers)]
        running = dice.random() < 0.6
        topology = "ps" if servers else dice.choice(SERVERLESS)
        compression = {"type": dice.choice(TYPES), "min_size": "0"}
        if topologies.TOPOLOGIES[topology].needs_devices_per_host:
            shared = [d for d in range(1, workers + 1) if workers % d == 0]
            compression["devices_per_host"] = str(dice.choice(shared))
        sizes = [dice.choice(SIZES) for _ in range(dice.randint(1, 12))]
        steps, optimizer = dice.choice([3, 30, 1_000_000]), dice.random() < 0.4
        strike = havoc.Strike(
            dice.choice(victims),
            dice.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGSTOP, signal.SIGTERM]),
            dice.uniform(0, 1 if running else 3),
            running,
        )
        if strike.number == signal.SIGSTOP:
            strike.pause = havoc.draw_pause(dice)
        steps = havoc.NAPPING if strike.pause else steps
        neighbor = dice.random() < 0.2
        return cls(
            workers, servers, topology, compression, sizes, steps, optimizer, strike, neighbor
        )

    def __str__(self) -> str:
        second = ", another job beside it" if self.neighbor else ""
        return (
            f"{self.workers} workers, {self.servers} servers, {self.topology}, "
            f"{self.compression['type']}, {len(self.sizes)} keys{second}; {self.strike}"
        )

    def _cluster(self) -> Cluster:
        settings = {
            "compression": self.compression,
            "sizes": self.sizes,
            "steps": self.steps,
            "nap": havoc.NAP if self.steps == havoc.NAPPING else 0,
        }
        env = {
            "CHAOS": json.dumps(settings),
            "CHAOS_OPTIMIZER": "1" if self.optimizer else "",
            "HIPRESS_TOPOLOGY": self.topology,
            "HIPRESS_START_TIMEOUT": str(START_TIMEOUT),
        }
        return Cluster(WORKER, self.workers, self.servers, env=env, server_command=SERVER)

    def play(self) -> list[str]:
        """Run the job; return what was wrong."""
        with contextlib.ExitStack() as stack:
            second = None
            if self.neighbor:
                kind = {"type": "none", "min_size": "0"}
                job = Job(2, 1, "ps", kind, [10, 70_000], havoc.NAPPING, False, self.strike, False)
                second = stack.enter_context(job._cluster())
            cluster = stack.enter_context(self._cluster())
            wrong = self._strike(cluster)
            if second is not None and not wrong:
                try:
                    failed = any(result.returncode for result in second.wait(DEADLINE))
                except JobTimeout:
                    failed = True
                wrong = [f"the other job failed:\n{second.report()}"] * failed
            return [f"{each}\n{cluster.report()}" for each in wrong[:1]]

    def _strike(self, cluster: Cluster) -> list[str]:
        strike = self.strike
        if strike.running:
            try:
                for rank in range(self.workers):
                    cluster.wait_for(f"worker {rank}", "running", timeout=60)
            except AssertionError:
                return ["it did not start"]
        time.sleep(strike.after)
        trained = strike.running and strike.victim in cluster.running()
        done_before = "done" in "".join(
            cluster.output(f"worker {rank}") for rank in range(self.workers)
        )
        cluster.signal(strike.victim, strike.number)
        if strike.pause:
            time.sleep(strike.pause)
            cluster.signal(strike.victim, signal.SIGCONT)
        deadline, written = time.monotonic() + DEADLINE, 0
        survivors = set(cluster.processes) - ({strike.victim} if not strike.pause else set())
        while survivors & set(cluster.running()) and time.monotonic() < deadline:
            time.sleep(0.02)
            before, written = written, sum(len(cluster.output(name)) for name in survivors)
            if strike.pause and written > before:  # it continues, if slowly
                deadline = time.monotonic() + DEADLINE
        return self._judge(cluster, trained and not done_before)

    def _judge(self, cluster: Cluster, must_name: bool) -> list[str]:
        paused = self.strike.pause > 0
        late = set(cluster.running()) - (set() if paused else {self.strike.victim})
        wrong = [f"{name} still runs" for name in sorted(late)]
        victim = "the scheduler" if self.strike.victim == "scheduler" else self.strike.victim
        for name, process in cluster.processes.items():
            if name in late or (name == self.strike.victim and not paused):
                continue
            if process.returncode < 0:
                wrong.append(f"{name} crashed with signal {-process.returncode}")
            output = cluster.output(name)
            if "Traceback" in output and "HipressError" not in output:
                wrong.append(f"{name} ended with a traceback")
            if name == self.strike.victim:  # unknown what it saw when it woke up
                continue
            if name.startswith("worker") and must_name and "done" not in output:
                lines = [line for line in output.splitlines() if line.startswith("failed:")]
                if not lines or victim not in lines[0]:
                    wrong.append(f"{name} does not name {victim}: {lines}")
        return wrong


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=50))
