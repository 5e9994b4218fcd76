"""Program of servers and schedulers: `python -m mxnet_hipress.boot`.

A script whose first import is mxnet_hipress is also one, with DMLC_ROLE=server or scheduler.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Serve until the job ends."""
    # Python's own handler of Ctrl-C would not run while native code waits.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    role = os.environ.get("DMLC_ROLE")
    if role not in ("server", "scheduler"):
        print(
            f"mxnet_hipress.boot serves: DMLC_ROLE must be server or scheduler, got {role!r}",
            file=sys.stderr,
        )
        return 2
    try:
        from hipress.runtime.node import HipressError, Node
        from mxnet_hipress.server import Server
    except ImportError as error:
        print(f"hipress {role}: {error}", file=sys.stderr, flush=True)
        return 1

    node = None
    name = role
    try:
        node = Node()
        name = role if role == "scheduler" else f"server {node.rank}"
        node.serve(Server(node).control)
        node.stop()
        return 0
    except (HipressError, ImportError) as error:
        print(f"hipress {name}: {error}", file=sys.stderr, flush=True)
        if node is not None:
            node.abort()  # after the other nodes have received the reason for this node's end
        return 1


def exit_with(status: int) -> None:
    """End the process at once, even if native threads are still running."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    exit_with(main())
