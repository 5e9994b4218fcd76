"""One of two processes that send each other bytes over plain TCP, as the network's limit.

Nothing is encrypted, checked or summed. A step sends `bytes` each way, the same over each of
`sockets`, and ends with a byte each way, because a sum's results return only after its gradients
have arrived.
"""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.common.timing import options, report, time_blocks

PIECE = bytes(1 << 20)


def main() -> None:
    args = options(bytes=1 << 20, sockets=1, warmup=1, in_a_row=1)
    rank = int(os.environ["RANK"])
    sockets = connected(rank, args.sockets)
    each = args.bytes // args.sockets

    with ThreadPoolExecutor(2 * args.sockets) as threads:

        def exchange(size: int) -> None:
            work = [threads.submit(send, one, size) for one in sockets]
            work += [threads.submit(receive, one, size) for one in sockets]
            for one in work:
                one.result()

        def step() -> None:
            exchange(each)
            exchange(1)

        time_blocks(step, lambda: exchange(1), args.warmup)
        report(rank=rank, in_a_row=time_blocks(step, lambda: exchange(1), 1, args.in_a_row))


def connected(rank: int, count: int) -> list[socket.socket]:
    """Return so many sockets between the two processes, in the same order at both ends."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        with socket.create_server(address, backlog=count) as listener:
            listener.settimeout(60)
            return [listener.accept()[0] for _ in range(count)]
    return [_dialled(address) for _ in range(count)]


def _dialled(address: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(address, 60)
        except ConnectionRefusedError:  # the other process is still starting
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def send(to: socket.socket, size: int) -> None:
    """Send so many bytes."""
    for begin in range(0, size, len(PIECE)):
        to.sendall(memoryview(PIECE)[: size - begin])


def receive(of: socket.socket, size: int) -> None:
    """Receive so many bytes, and discard them.

    Raises:
        ConnectionError: If the other process has ended.
    """
    into = bytearray(min(size, len(PIECE)))
    while size:
        got = of.recv_into(into, min(size, len(into)))
        if got == 0:
            raise ConnectionError("the other process has ended")
        size -= got


if __name__ == "__main__":
    main()
