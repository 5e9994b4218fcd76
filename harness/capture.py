"""Capture of all frames that the nodes of an emulated network send each other.

>>> with Capture(network) as capture:
...     run_a_job()
>>> b"password" in capture.stop()
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.netns import ShapedNetwork

_ALL_PROTOCOLS = 0x0003  # ETH_P_ALL of linux/if_ether.h
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 256 << 20
_STOP_SECONDS = 20


class Capture:
    """Context manager that records each frame on the network's switch."""

    def __init__(self, network: ShapedNetwork) -> None:
        self._network = network
        self._data: bytes | None = None

    def __enter__(self) -> Capture:
        self._folder = tempfile.TemporaryDirectory(prefix="hipress-capture-")
        self._file = Path(self._folder.name) / "frames"
        command = ["ip", "netns", "exec", self._network.switch, sys.executable, "-I", "-S"]
        self._process = subprocess.Popen(
            [*command, __file__, str(self._file)], stdout=subprocess.PIPE
        )
        try:
            if not self._process.stdout.readline():
                raise RuntimeError("the capture did not start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def stop(self) -> bytes:
        """End the capture and return the bytes of all frames, concatenated."""
        if self._data is None:
            self._process.send_signal(signal.SIGTERM)
            if self._process.wait(_STOP_SECONDS):
                raise RuntimeError("the capture lost frames, or failed")
            self._data = self._file.read_bytes()
        return self._data

    def __exit__(self, *unused: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()


def main() -> None:
    """Write frames to the file in argv until SIGTERM; exit with 1 if the kernel dropped some."""
    signals = []
    signal.signal(signal.SIGTERM, lambda *_: signals.append(True))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as source,
        open(sys.argv[1], "wb") as target,
    ):
        source.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        source.settimeout(0.05)
        print("captures", flush=True)
        while True:
            try:
                target.write(source.recv(1 << 17))
            except socket.timeout:
                if signals:
                    break
        SOL_PACKET, PACKET_STATISTICS = 263, 6
        statistics = source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
    sys.exit(1 if int.from_bytes(statistics[4:8], sys.byteorder) else 0)


if __name__ == "__main__":
    main()
