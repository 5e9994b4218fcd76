"""Holds the interpreter's lock, while a watch must not count the time in which it is stopped."""

import ctypes

from hipress.native.library import lib


def keep_alive(seconds):
    lib.HipressKeepAlive(seconds, 0, 75, b"the last words\n")


keep_alive(0.5)
keep_alive(0.0)
ctypes.PyDLL(None).sleep(2)
keep_alive(4.0)
print("ready", flush=True)
ctypes.PyDLL(None).sleep(100)
