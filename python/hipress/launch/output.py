"""Output of many processes on one terminal: whole lines, each with its process's name."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

COLORS = (
    "cyan",
    "green",
    "yellow",
    "magenta",
    "blue",
    "bright_cyan",
    "bright_green",
    "bright_yellow",
    "bright_magenta",
    "bright_blue",
)
STDOUT, STDERR = 1, 2
HURRIED_SECONDS = 1.0  # time for a slow reader, if the launcher has more to do


class Stalled(OSError):
    """Error: the reader of the output does not read."""


class LineSplitter:
    """Splitter of a stream of bytes into lines.

    A progress bar rewrites its line with carriage returns. Such a state counts as a line, but at
    most one in ``interval`` seconds. The last one is always returned.
    """

    def __init__(
        self,
        word: str = "",
        limit: int = 1 << 20,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._word, self._limit, self._interval, self._clock = word.encode(), limit, interval, clock
        self._rest = b""
        self._next_state = 0.0
        self.reports: list[bytes] = []
        """Ends of lines that followed the word, if there is one. They are not output."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines completed by ``data``, without their ends."""
        *lines, rest = (self._rest + data).split(b"\n")
        done = []
        for line in lines:
            text, word, report = line.partition(self._word) if self._word else (line, b"", b"")
            if word:
                self.reports.append(report)
            if text or not word:
                done.append(self._last_state(text))
        # A return at the very end may be the first half of "\r\n", so it is kept for the next call.
        end = b"\r" if rest.endswith(b"\r") else b""
        states, separator, tail = rest[: len(rest) - len(end)].rpartition(b"\r")
        if separator:
            state = self._last_state(states)
            if state.strip() and self._clock() >= self._next_state:
                self._next_state = self._clock() + self._interval
                done.append(state)
                state = b""
            rest = (state + b"\r" if state.strip() else b"") + tail + end
        self._rest = rest
        if len(self._rest) > self._limit and not (self._word and self._word in self._rest):
            # The end may be the beginning of the word, and what follows a report.
            starts = (n for n in range(len(self._word) - 1, 0, -1))
            kept = next((n for n in starts if self._rest.endswith(self._word[:n])), 0)
            done.append(self._rest[: len(self._rest) - kept])
            self._rest = self._rest[len(self._rest) - kept :]
        return done

    def finish(self) -> list[bytes]:
        """Return the lines that are left at the end of the stream."""
        rest, self._rest = self._rest, b""
        return [self._last_state(rest)] if rest.strip() else []

    @staticmethod
    def _last_state(line: bytes) -> bytes:
        """Return the part of a rewritten line that a terminal would show."""
        if b"\r" not in line:
            return line
        states = [state for state in line.split(b"\r") if state]
        return states[-1] if states else b""


class Printer:
    """Writer of lines with prefixes to this process's stdout and stderr, with colors on a terminal.

    Its methods raise OSError if that fails: BrokenPipeError if the reader has ended, Stalled if it
    does not read while the launcher has more to do. Output that cannot be written is lost.
    """

    def __init__(self) -> None:
        self.hurries: Callable[[], bool] = lambda: False
        """Whether there is more to do than to wait for the reader."""
        self._cut: set[int] = set()  # streams whose last line was written only in part
        self._prefixes: dict[tuple[str, int], bytes] = {}
        self._colors: dict[str, str] = {}

    def lines(self, name: str, stream: int, lines: list[bytes]) -> None:
        """Print lines of one process."""
        if lines:
            prefix = self._prefix(name, stream)
            self._write(stream, b"".join(prefix + line + b"\n" for line in lines))

    def message(self, text: str, style: str = "bold") -> None:
        """Print a line of the launcher to stderr."""
        self._write(STDERR, self._styled(f"hipress-launch: {text}", STDERR, style) + b"\n")

    def _prefix(self, name: str, stream: int) -> bytes:
        key = (name, stream)
        if key not in self._prefixes:
            color = self._colors.setdefault(name, COLORS[len(self._colors) % len(COLORS)])
            self._prefixes[key] = self._styled(f"[{name}]", stream, color) + b" "
        return self._prefixes[key]

    @staticmethod
    def _styled(text: str, stream: int, style: str) -> bytes:
        if os.isatty(stream):
            try:
                from rich.color import ColorSystem
                from rich.console import Console
                from rich.style import Style

                with os.fdopen(os.dup(stream), "w") as file:
                    system = Console(file=file).color_system
                if system is not None and "NO_COLOR" not in os.environ:
                    text = Style.parse(style).render(text, color_system=ColorSystem.STANDARD)
            except ImportError:
                pass  # from a source tree without installation: no colors
        return text.encode(errors="surrogateescape")  # file names may be any bytes

    def _write(self, stream: int, data: bytes) -> None:
        """Write everything, in parts that do not block where the reader is slow."""
        if stream in self._cut:
            data = b"\n" + data
        view, hurried_until = memoryview(data), None
        while view:
            _, ready, _ = select.select([], [stream], [], 0.1)
            if ready:
                try:
                    view = view[os.write(stream, view[: select.PIPE_BUF]) :]
                    if view:
                        self._cut.add(stream)
                    else:
                        self._cut.discard(stream)
                except BlockingIOError:
                    time.sleep(0.005)
            elif self.hurries():
                hurried_until = hurried_until or time.monotonic() + HURRIED_SECONDS
                if time.monotonic() > hurried_until:
                    raise Stalled("nobody reads")
