"""Counts packets that arrive, and answers questions."""

import socket

here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE: above the limit, for root
here.bind(("0.0.0.0", 7))
print("ready", flush=True)
count, swapped, last = 0, 0, -1
while True:
    data, peer = here.recvfrom(100)
    if data.startswith(b"?"):
        here.sendto(b"%s %d %d" % (data, count, swapped), peer)
    else:
        count, swapped, last = count + 1, swapped + (int(data) < last), int(data)
