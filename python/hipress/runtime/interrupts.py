"""Ctrl-C while the main thread waits in a framework's native code.

Python runs signal handlers when the main thread returns from native code. Calls of our library
check for signals while they wait. PyTorch, MXNet and TensorFlow do not: their waits for gradients
last until these operations end. Therefore a thread receives SIGINT through Python's wakeup file
descriptor. If the main thread stays in native code, that thread ends the operations of this process
with an error. The framework's call then returns, and Python raises KeyboardInterrupt.

This applies only while Python's own SIGINT handler is installed: a program with a handler of its
own may not want to end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any

_SECONDS = 0.2
"""Time for the main thread to raise KeyboardInterrupt by itself: half a second is the limit."""


_nodes: weakref.WeakSet[Any] = weakref.WeakSet()
_wakeup: socket.socket | None = None
"""Socket to which Python writes the numbers of signals."""


def watch(node: Any) -> None:
    """Call ``node.interrupt()`` on Ctrl-C if the main thread stays in native code.

    Only a weak reference to the node is kept. This has no effect if the program itself uses
    Python's wakeup file descriptor, or if it is not called on the main thread.
    """
    global _wakeup
    _nodes.add(node)
    if threading.current_thread() is not threading.main_thread():
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    if before != -1:  # HiPress's own, or the program's
        signal.set_wakeup_fd(before, warn_on_full_buffer=not _is_own(before))
        return
    _wakeup = sender
    threading.Thread(target=_run, args=(receiver,), name="hipress-interrupt", daemon=True).start()


def _is_own(descriptor: int) -> bool:
    return _wakeup is not None and descriptor == _wakeup.fileno()


def _run(receiver: socket.socket) -> None:
    main = threading.main_thread().ident
    while numbers := receiver.recv(4096):
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if signal.SIGINT in numbers and default:
            _end_operations(main)


def _end_operations(main: int) -> None:
    """Interrupt all nodes until the main thread executes another instruction."""
    before = _position(main)
    time.sleep(_SECONDS)
    while _position(main) == before:
        for node in list(_nodes):
            node.interrupt()
        time.sleep(_SECONDS / 2)


def _position(thread: int) -> tuple[FrameType | None, int]:
    """Return the frame that a thread executes, and the index of its instruction."""
    frame = sys._current_frames().get(thread)
    return frame, frame.f_lasti if frame else -1


def _forget() -> None:
    global _wakeup
    _nodes.clear()
    if _wakeup is not None:  # otherwise the parent would handle the child's signals
        descriptor = signal.set_wakeup_fd(-1)
        if descriptor != -1 and not _is_own(descriptor):
            signal.set_wakeup_fd(descriptor)  # the program's
        _wakeup.close()
        _wakeup = None


os.register_at_fork(after_in_child=_forget)
