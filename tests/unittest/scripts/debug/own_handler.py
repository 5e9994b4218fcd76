"""Installs a handler of SIGUSR1, which is called in addition to the dump, and forks a child."""

import os
import signal
import time

import numpy as np

from hipress.runtime.node import Node

heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append("mine"))
node = Node()
node.init_array(0, np.zeros(10, np.float32), "w")
node.pushpull(0, np.ones(10, np.float32)).wait(30)
os.kill(os.getpid(), signal.SIGUSR1)
files, end = [], time.monotonic() + 20
while not any(name.endswith(".json") for name in files):  # a thread writes it
    assert time.monotonic() < end
    time.sleep(0.02)
    files = os.listdir(os.environ["HIPRESS_DEBUG_DIR"])
assert heard == ["mine"] and len(files) == 1, (heard, files)
child = os.fork()
if child == 0:
    before = os.path.getmtime(os.path.join(os.environ["HIPRESS_DEBUG_DIR"], files[0]))
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.5)
    after = os.path.getmtime(os.path.join(os.environ["HIPRESS_DEBUG_DIR"], files[0]))
    same = os.listdir(os.environ["HIPRESS_DEBUG_DIR"]) == files and before == after
    os._exit(0 if heard == ["mine", "mine"] and same else 7)
assert os.waitpid(child, 0)[1] == 0
asked = node.debug()
assert asked["node"] == "worker 0" and asked["keys"][0]["name"] == "w", asked
assert asked["events"], asked
print("kept", flush=True)
