"""How the launcher cuts streams into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hipress.launcher.output import LineSplitter


def split(chunks: list[bytes], times: list[float] | None = None, **options) -> list[bytes]:
    """All lines of a stream that comes in chunks, each at a time in seconds (default: at once)."""
    clock = iter(times or [])
    now = [0.0]
    splitter = LineSplitter(clock=lambda: now[0], **options)
    lines = []
    for chunk in chunks:
        now[0] = next(clock, now[0])
        lines += splitter.feed(chunk)
    return lines + splitter.finish()


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_lines_do_not_depend_on_chunks(chunks):
    chunks = [chunk.replace(b"\r", b".") for chunk in chunks]
    whole = b"".join(chunks).split(b"\n")
    if not whole[-1].strip():
        whole.pop()
    assert split(chunks) == whole


def test_carriage_return_and_newline_end_one_line():
    assert split([b"a\r\nb\r\n"]) == [b"a", b"b"]
    assert split([b"a\r", b"\nb", b"\r", b"\n"]) == [b"a", b"b"]


def test_progress_bar_shows_one_state_a_second_and_the_last():
    states = [b"\r%d%%" % number for number in range(100)] + [b"\r100%\n", b"next\n"]
    assert split([b"".join(states)]) == [b"100%", b"next"]
    times = [number / 10 for number in range(102)]  # ten states a second
    lines = split(states, times)
    assert lines[-2:] == [b"100%", b"next"]
    assert 9 <= len(lines) - 2 <= 11
    assert all(line.endswith(b"%") for line in lines[:-1])
    assert len(set(lines)) == len(lines)


def test_progress_bar_with_returns_at_the_end():
    assert split([b"10%\r", b"20%\r", b"30%\r"], interval=100.0) == [b"10%", b"30%"]


def test_progress_without_newline_needs_no_more_room_than_its_last_state():
    splitter = LineSplitter(limit=1000, interval=1e9, clock=lambda: 0.0)
    lines = []
    for number in range(10000):
        lines += splitter.feed(b"state %d\r" % number)
    assert lines == [b"state 0"]
    assert splitter.finish() == [b"state 9999"]


def test_endless_line_is_cut_at_the_limit():
    assert split([b"x" * 60, b"x" * 60, b"y\n"], limit=100) == [b"x" * 120, b"y"]
