"""Processes on this machine."""

from __future__ import annotations

import os

from .job import Job, Rank
from .runner import Task


def local_task(job: Job, rank: Rank, env: dict[str, str] | None = None,
               node_host: str | None = None) -> Task:
    """One process here, in the current directory; ``env`` gives way to the job's own."""
    merged = {**(env or {}), **job.environment(rank, node_host)}
    return Task(str(rank), rank.role, {"argv": job.argv(rank), "env": merged, "cwd": os.getcwd()})


def tasks(job: Job) -> list[Task]:
    """All processes of the job here, on the loopback interface unless one is named.

    Without OMP_NUM_THREADS every process would take all cores: each worker gets its share.
    """
    env = {}
    if "OMP_NUM_THREADS" not in os.environ:
        env["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // job.num_workers))
    node_host = job.root_uri if job.interface is None else None
    return [local_task(job, rank, env, node_host) for rank in job.ranks()]
