"""Receiver of a stream, which prints its rate in bits/s; argument: the address to listen at."""

import socket
import sys
import time

family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 0), family=family)
listener.settimeout(20)
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
peer.settimeout(20)
view, total, start = memoryview(bytearray(1 << 20)), 0, None
while True:
    count = peer.recv_into(view)
    if start is None:
        start = time.perf_counter()
    if not count:
        break
    total += count
print(total * 8 / (time.perf_counter() - start), flush=True)
