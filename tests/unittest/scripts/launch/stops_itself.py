"""Slot 1 stops itself."""

import os
import signal

if os.environ["HIPRESS_ELASTIC_SLOT"] == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
