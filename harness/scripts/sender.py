"""Sender of a stream; arguments: address, port, bytes."""

import socket
import sys

peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
block, left = memoryview(bytes(1 << 20)), int(sys.argv[3])
while left > 0:
    left -= peer.send(block[:left])
