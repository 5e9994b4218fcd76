"""Worker 1 trains a step and ends in the way that is the argument.

Worker 0 trains with it, waits for its end, and prints whether it left or failed. Worker 0 makes
another step before that if the argument is "last push".
"""

import atexit
import os
import sys
import threading
import time

import numpy as np

from hipress.runtime.node import HipressError, Node

ENDING = sys.argv[1]


def step(node):
    out = np.zeros(4, np.float32)
    node.pushpull(0, np.ones(4, np.float32), out).wait(20)
    assert out[0] == 2


def begin():
    node = Node()
    node.init_array(0, np.zeros(4, np.float32))
    step(node)
    return node


def leave_and_exit(node):
    node.leave()
    sys.exit()


def raise_with_a_push_under_way(node):
    node.pushpull(0, np.ones(4, np.float32))
    raise ValueError("of the script")


def raise_value_error(node):
    raise ValueError("of the script")


def raise_keyboard_interrupt(node):
    raise KeyboardInterrupt


def raise_in_a_thread(node):
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


def exit_in_a_child(node):
    child = os.fork()
    if not child:
        sys.exit(1)
    os.waitpid(child, 0)


def raise_in_a_child(node):
    child = os.fork()
    if not child:
        raise ZeroDivisionError
    os.waitpid(child, 0)


def register_exit_handler(node):
    atexit.register(lambda: print(node.stats(), flush=True))


def push(node):
    node.push(0, np.ones(4, np.float32))


ENDINGS = {
    "end of the script": lambda node: None,
    "stop": Node.stop,
    "leave, exit": leave_and_exit,
    "exit": lambda node: sys.exit(0),
    "exit with 4": lambda node: sys.exit(4),
    "error, push under way": raise_with_a_push_under_way,
    "error": raise_value_error,
    "interrupt": raise_keyboard_interrupt,
    "abort": Node.abort,
    "_exit": lambda node: os._exit(3),
    "error in a thread": raise_in_a_thread,
    "exit in a child": exit_in_a_child,
    "error in a child": raise_in_a_child,
    "exit handler": register_exit_handler,
    "last push": push,
}


def end():
    """End in the way that the argument names, in a `with` block if it begins with "block:"."""
    if not ENDING.startswith("block:"):
        ENDINGS[ENDING](begin())
        return
    with begin() as node:
        ENDINGS[ENDING[len("block:") :]](node)
    # What follows the block takes longer than worker 0 needs to detect how it ended.
    time.sleep(0.5)


def watch():
    """Print how worker 1 ends."""
    with begin() as node:
        try:
            if ENDING == "last push":
                step(node)
            while not node.left():
                time.sleep(0.02)
                error = node.failure()
                if error:
                    raise HipressError(error)
            print("worker 1 left in peace", flush=True)
        except HipressError as error:
            print("failure:", error, flush=True)


if os.environ["DMLC_WORKER_ID"] == "1":
    end()
else:
    watch()
