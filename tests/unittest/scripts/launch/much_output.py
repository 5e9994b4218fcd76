"""Writes 16 MiB and ends when file "end" exists."""

import os
import time

for _ in range(256):
    os.write(1, b"x" * ((1 << 16) - 1) + b"\n")
print("written", flush=True)
while not os.path.exists("end"):
    time.sleep(0.02)
os.write(2, b"no end of line")
