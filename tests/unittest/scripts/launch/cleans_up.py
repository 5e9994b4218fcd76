"""Cleans up when it gets SIGTERM."""

import signal
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: (print("cleaned up"), sys.exit(0)))
print("ready", flush=True)
time.sleep(60)
