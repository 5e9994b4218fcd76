"""Program of a job's server or scheduler, for every front end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from hipress.errors import HipressError

if TYPE_CHECKING:
    from hipress.runtime.node import Later, Node

    Control = Callable[[int, int, bytes], "bytes | Later"]


def serve(make_control: Callable[[Node], Control] | None = None) -> int:
    """Serve until the job ends, and return the exit status: 0 if all workers left normally.

    Args:
        make_control: Returns the function that answers commands of workers on this node.
    """
    # Python's own handler of Ctrl-C would not run while native code waits.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    name, node = os.environ["DMLC_ROLE"], None
    try:
        from hipress.runtime.node import Node

        node = Node()
        if name == "server":
            name = f"server {node.rank}"
        node.serve(make_control and make_control(node))
        node.stop()
        return 0
    except (HipressError, ImportError) as error:
        print(f"hipress {name}: {error}", file=sys.stderr)
        if node is not None:
            node.abort()  # after the other nodes have received the reason for this node's end
        return 1


def exit_with(status: int) -> None:
    """End the process at once, even if native threads are still running."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
