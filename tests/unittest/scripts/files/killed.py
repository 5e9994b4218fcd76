"""Writes a part of the file that is the argument, and sleeps."""

import sys
import time

from hipress.base import files

with files.replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    time.sleep(60)
