"""The worker ends more than half a second after its servers see that. Argument: a file."""

import os
import pathlib
import sys
import time

closed = pathlib.Path(sys.argv[1])
if os.environ["DMLC_ROLE"] == "worker":
    closed.touch()
    time.sleep(0.6)
    sys.exit(3)
while not closed.exists():
    time.sleep(0.01)
sys.exit(1)
