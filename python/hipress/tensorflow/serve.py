"""Program of a server or scheduler, which needs no TensorFlow."""

from __future__ import annotations

import os
import signal
import sys

from hipress.runtime.node import HipressError, Node


def until_the_end() -> None:
    """Serve until the job ends, then exit with status 0 if all workers left normally, otherwise
    1."""
    # Python's own handler of Ctrl-C would not run while native code waits.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    name, status, node = os.environ["DMLC_ROLE"], 0, None
    try:
        node = Node()
        if name == "server":
            name = f"server {node.rank}"
        node.serve()
        node.stop()
    except HipressError as error:
        print(f"hipress {name}: {error}", file=sys.stderr)
        status = 1
        if node is not None:
            node.abort()  # after the other nodes have received the reason for this node's end
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # native threads may still be running
