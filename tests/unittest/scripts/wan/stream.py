"""Receives ten megabytes and compares them; with an address as argument, sends them."""

import socket
import sys

data = bytes(range(251)) * 40000
if len(sys.argv) > 1:
    socket.create_connection((sys.argv[1], 5001), timeout=30).sendall(data)
else:
    here = socket.create_server(("", 5001))
    print("ready", flush=True)
    there, _ = here.accept()
    got = b"".join(iter(lambda: there.recv(1 << 20), b""))
    print(got == data)
