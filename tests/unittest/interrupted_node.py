"""Program of a node that waits until Ctrl-C, for test_interrupts.py.

Usage: ``interrupted_node.py WAIT``, a name of :data:`WAITS` or :data:`AT_EXIT`
"""

from __future__ import annotations

import sys
import time

import numpy as np

from hipress.runtime.node import HipressError, Node


def _pushed() -> tuple[Node, object]:
    node = Node()
    node.init_array(0, np.zeros(4, np.float32))
    return node, node.pushpull(0, np.ones(4, np.float32))


def _init_twice() -> None:
    """Initialize a key again after Ctrl-C, as a cell of a notebook that runs again does."""
    node = Node()
    try:
        node.init_array(0, np.zeros(4, np.float32))
    except KeyboardInterrupt:
        try:
            node.init_array(0, np.zeros(4, np.float32))
        except HipressError as error:
            print("second init:", error, flush=True)
        raise


def _leave_block() -> None:
    with Node() as node:
        node.init_array(0, np.zeros(4, np.float32))
        node.pushpull(0, np.ones(4, np.float32))


WAITS = {
    "connect": Node,
    "start": Node,
    "init": _init_twice,
    "barrier": lambda: Node().barrier(),
    "wait": lambda: _pushed()[1].wait(),
    "wait_all": lambda: _pushed()[0].wait_all(),
    "leave": lambda: _pushed()[0].leave(),
    "stop": lambda: _pushed()[0].stop(),
    "with block": _leave_block,
    "command": lambda: Node().command(0, 1, b""),
    "save_states": lambda: Node().save_states(0),
    "serve": lambda: Node().serve(),
    "scheduler": lambda: Node().serve(),
    "controller": lambda: Node().serve(lambda *command: time.sleep(60)),
}

AT_EXIT = "exit"
"""Name of the program that waits only when the process ends, in the node's exit handler."""

if __name__ == "__main__":
    print("waits", flush=True)
    try:
        {**WAITS, AT_EXIT: _pushed}[sys.argv[1]]()
    except KeyboardInterrupt:
        print("interrupted at", time.monotonic(), flush=True)
        raise
