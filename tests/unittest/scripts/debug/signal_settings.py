"""Sends SIGUSR1 to itself, then sleeps; no events are recorded."""

import os
import signal
import time

from hipress.runtime.node import Node

node = Node()
assert node.debug()["events"] == []
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(60)
