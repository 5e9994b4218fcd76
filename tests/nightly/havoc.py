"""Shared code of the chaos programs: random jobs, run one after another, and a verdict on each."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SCRIPTS = Path(__file__).resolve().parent / "scripts"


@dataclass
class Strike:
    """Fault injected into a job under a launcher or scheduler."""

    victim: str
    """A process's name."""
    number: int
    """Number of the signal."""
    after: float
    """Seconds from the moment below to the signal."""
    running: bool
    """Whether that moment is when all workers train, instead of the start of the job."""
    pause: float = 0.0
    """Seconds after which a stopped process continues; 0: it does not."""

    def __str__(self) -> str:
        when = "training" if self.running else "starting"
        name = signal.Signals(self.number).name
        pause = f" for {self.pause:.1f} s" if self.pause else ""
        return f"{name}{pause} to {self.victim} {self.after:.2f} s after {when}"


def draw_pause(dice: random.Random) -> float:
    """Draw how long a process is stopped: around the failure timeout of these jobs (3.5 s), or for
    good."""
    return dice.choice([0.0, dice.uniform(0.2, 2), dice.uniform(2, 5), dice.uniform(5, 9)])


NAPPING = 150
"""Steps of a job in which a process is stopped for a while: it may go on, and must end."""
NAP = 0.03
"""Seconds that each worker of such a job sleeps in each step."""


class Job(Protocol):
    """Job with its fault; str() of it describes both in one line."""

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """Draw a random job."""

    def play(self) -> list[str]:
        """Run the job; return what was wrong."""


def main(kind: type[Job], doc: str, jobs: int) -> int:
    """Run the jobs that the command line requests; return the exit status.

    Args:
        kind: the class of the jobs.
        doc: the program's docstring.
        jobs: how many, unless the command line says.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=jobs)
    parser.add_argument("--seed", type=int, default=1, help="job i is drawn from seed + i")
    args = parser.parse_args()
    failed = 0
    for seed in range(args.seed, args.seed + args.jobs):
        job = kind.draw(random.Random(seed))
        started = time.monotonic()
        wrong = job.play()
        failed += bool(wrong)
        verdict = wrong[0] if wrong else f"{time.monotonic() - started:.1f} s"
        print(f"{seed}: {job}: {verdict}", flush=True)
    print(f"{args.jobs} jobs, {failed} went wrong")
    return 1 if failed else 0
