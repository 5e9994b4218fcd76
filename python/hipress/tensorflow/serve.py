"""The program of a server or scheduler: it sums and links, and needs no TensorFlow."""

from __future__ import annotations

import os
import signal
import sys

from hipress.runtime.node import HipressError, Node


def until_the_end() -> None:
    """Serve until the job ends, then end the process: 0 if all workers left in peace, else 1."""
    # Waiting in native code, Python would not get to its own handler of Ctrl-C.
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
            node.abort()  # not before the others have the news of what ended this node
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # native threads may still be at work, and are no longer needed
