"""Jobs of processes, on loopback or on shaped links, for tests and benchmarks.

- ``processes``: starts processes, bounds them in time, reads what they write, ends them by id
- ``cluster``: a job of scheduler, servers and workers
- ``launch``: the launcher, and an sshd for it; ``launch_elastic``: workers of elastic jobs;
  ``slurm``: a Slurm of one node
- ``torch_ranks``: a function as the ranks of a torch.distributed job; ``torch_job``: a command
- ``netns``: nodes as network namespaces, whose links carry a given rate
- ``marks``: when a test is skipped
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "harness" / "scripts"
"""Folder of programs that the modules of this package run."""
if str(ROOT / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "python"))
