"""How many files the launcher may have open."""

from __future__ import annotations

import resource


def allow_files(count: int) -> None:
    """Lets this process have ``count`` files open, or as many as the hard limit allows. Processes
    that it starts inherit that, so a soft limit that suffices stays: select() relies on it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
