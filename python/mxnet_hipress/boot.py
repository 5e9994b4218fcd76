"""Program of servers and schedulers: `python -m mxnet_hipress.boot`.

A script whose first import is mxnet_hipress is also one, with DMLC_ROLE=server or scheduler.
"""

from __future__ import annotations

import os
import sys

from hipress.runtime.serving import exit_with, serve


def main() -> int:
    """Serve until the job ends, and return the exit status."""
    role = os.environ.get("DMLC_ROLE")
    if role not in ("server", "scheduler"):
        print(
            f"mxnet_hipress.boot serves: DMLC_ROLE must be server or scheduler, got {role!r}",
            file=sys.stderr,
        )
        return 2

    def make_control(node):
        from mxnet_hipress.server import Server

        return Server(node).control

    return serve(make_control)


if __name__ == "__main__":
    exit_with(main())
