"""Kills, stops or terminates a random rank of random PyTorch jobs, at a random moment. Minutes.

Not for CI. Whatever happens, every survivor ends within its deadline, without a crash, either
successfully or with a message that the victim has died; no process of the job's is left. The first
rank's process, which carries the job's scheduler, is the victim as often as all other ranks
together.

    python tests/nightly/chaos_torch.py --jobs 20 --seed 1
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from dataclasses import dataclass

import havoc  # first: it finds the harness

from harness.processes import base_environment
from harness.torch_job import TorchJob
from hipress.topology import topologies

TIMEOUT = 15
DEADLINE = TIMEOUT + 25
RANK = havoc.SCRIPTS / "chaos_torch.py"


@dataclass
class Job:
    """Random job that is run once."""

    ranks: int
    settings: dict[str, object]
    victim: int
    number: int
    moment: str
    """Event that all ranks report first: they join the engine's job ("joining"), or train
    ("running")."""
    after: float
    """Seconds from then to the signal."""
    pause: float
    """Seconds after which a stopped rank continues; 0: it does not."""

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """Draw a random job."""
        ranks = dice.randint(2, 4)
        settings = {
            "width": dice.choice([32, 200, 700]),
            "layers": dice.randint(1, 5),
            "bucket_cap_mb": dice.choice([1, 25]),
            "type": dice.choice(["onebit", "maxmin", "dgc", "tbq"]),
            "topology": dice.choice(topologies.names()),
            "more": {},
            "nap": 0,
            "min_size": dice.choice([0, 16384]),
            "steps": dice.choice([2, *[1_000_000] * 3]),
            "raises": dice.random() < 0.5,
            "destroys": dice.random() < 0.5,
            "forks": dice.random() < 0.3,
        }
        if topologies.TOPOLOGIES[settings["topology"]].needs_devices_per_host:
            shared = [d for d in range(1, ranks + 1) if ranks % d == 0]
            settings["more"] = {"devices_per_host": dice.choice(shared)}
        number = dice.choice([signal.SIGKILL, signal.SIGTERM, *[signal.SIGSTOP] * 2])
        pause = havoc.draw_pause(dice) if number == signal.SIGSTOP else 0.0
        if pause:
            settings.update(steps=havoc.NAPPING, nap=havoc.NAP)
        victim = dice.choice([0, dice.randrange(1, ranks)])
        moment = dice.choice(["joining", "running", "running"])
        after = dice.uniform(0, 0.3 if moment == "joining" else 1.5)
        return cls(ranks, settings, victim, number, moment, after, pause)

    def __str__(self) -> str:
        pause = f" for {self.pause:.1f} s" if self.pause else ""
        return (
            f"{self.ranks} ranks, {self.settings['topology']}, {self.settings['type']}, "
            f"{signal.Signals(self.number).name}{pause} to rank {self.victim} "
            f"{self.after:.2f} s after {self.moment}"
        )

    def play(self) -> list[str]:
        """Run the job; return what was wrong."""
        env = base_environment({"CHAOS": json.dumps(self.settings), "TIMEOUT": str(TIMEOUT)})
        with TorchJob([sys.executable, str(RANK)], self.ranks, env) as job:
            wrong = self._disturb(job)
            return [f"{wrong[0]}\n{job.report()}"] if wrong else []

    def _disturb(self, job: TorchJob) -> list[str]:
        processes = list(job.processes.values())

        def texts() -> list[str]:
            return [job.output(name) for name in job.processes]

        deadline = time.monotonic() + 300
        while not all(self.moment in text for text in texts()):
            if time.monotonic() > deadline or any(p.poll() not in (None, 0) for p in processes):
                return ["it did not start"]
            time.sleep(0.05)
        time.sleep(self.after)
        lives = processes[self.victim].poll() is None
        trained = lives and "running" in texts()[self.victim]
        if lives:
            processes[self.victim].send_signal(self.number)
        if self.pause:
            time.sleep(self.pause)
            processes[self.victim].send_signal(signal.SIGCONT)
        survivors = {r: p for r, p in enumerate(processes) if self.pause or r != self.victim}
        deadline, written = time.monotonic() + DEADLINE, 0
        while any(p.poll() is None for p in survivors.values()) and time.monotonic() < deadline:
            time.sleep(0.05)
            before, written = written, sum(map(len, texts()))
            if self.pause and written > before:  # it continues, if slowly
                deadline = time.monotonic() + DEADLINE
        wrong = []
        for rank, process in survivors.items():
            text = texts()[rank]
            errors = [line for line in text.splitlines() if line.startswith("failed:")]
            if process.poll() is None:
                wrong.append(f"rank {rank} still runs")
            elif process.returncode < 0:
                wrong.append(f"rank {rank} crashed with signal {-process.returncode}")
            elif rank == self.victim:  # unknown what it saw when it woke up
                continue
            elif lives and not trained:  # it cannot name a process that it never received from
                continue
            elif trained and "done" not in text and not self._named(errors):
                wrong.append(f"rank {rank} does not name rank {self.victim}: {errors}")
            elif process.returncode != (1 if errors and self.settings["raises"] else 0):
                wrong.append(f"rank {rank} ended with status {process.returncode}: {errors}")
            elif not self._alone(process.pid):
                wrong.append(f"rank {rank} has left processes behind")
        return wrong

    def _named(self, errors: list[str]) -> bool:
        # A process that is terminated may report the reason before its connections close.
        named = re.compile(rf"rank {self.victim} (\([\d.:]+\) died: |gave up: )")
        return any(map(named.search, errors))

    @staticmethod
    def _alone(session: int) -> bool:
        """Return whether all of a session's processes end. A data loader's workers look for their
        parent every five seconds."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                os.killpg(session, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.1)
        return False


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=20))
