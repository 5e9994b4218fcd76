"""Measures HiPress beside its peers; `python -m benchmarks` lists what there is.

A subject is a module with a `main` function, whose parameters are its options. `common/` has what
they share: options, jobs, timing inside the jobs' processes, results with their tables.
"""

import harness  # noqa: F401  finds the package hipress
