"""Benchmarks of HiPress and its peers; `python -m benchmarks` lists them.

A subject is a module with a `main` function, whose parameters are its options. `common/` contains
what subjects share: options, jobs, timing inside the jobs' processes, results with their tables.
"""

import harness  # noqa: F401  finds the package hipress
