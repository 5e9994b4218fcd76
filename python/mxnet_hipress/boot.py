"""The server's and the scheduler's program: `python -m mxnet_hipress.boot`, or any script whose
first import is mxnet_hipress, with DMLC_ROLE=server or scheduler."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Serve until the job ends.

    :return: exit status: 0 if all workers left in peace, 1 with a line on stderr if not
    """
    # Waiting in native code, Python would not get to its own handler of Ctrl-C.
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
            node.abort()  # not before the others have the news of what ended this node
        return 1


def exit_with(status: int) -> None:
    """End the process at once: native threads may still be at work, and are no longer needed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    exit_with(main())
