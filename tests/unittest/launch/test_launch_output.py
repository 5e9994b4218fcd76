"""Launcher output: how streams are cut into lines, and what happens where they cannot be
written."""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.launch import LAUNCH, launched, python
from hipress.launch import cli, output, supervisor
from hipress.launch.launch_error import LaunchError
from hipress.launch.output import LineSplitter


def split(chunks: list[bytes], times: list[float] | None = None, **options) -> list[bytes]:
    """Return all lines of a stream that comes in chunks, each at a time in seconds (default: at
    once)."""
    clock = iter(times or [])
    now = [0.0]
    splitter = LineSplitter(clock=lambda: now[0], **options)
    lines = []
    for chunk in chunks:
        now[0] = next(clock, now[0])
        lines += splitter.feed(chunk)
    return lines + splitter.finish()


@settings(deadline=None)  # the machine may be busy during any example
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


# What cannot be written


ENDLESS = python("while True: print('x' * 1000)")


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("elastic", [[], ["--elastic"]], ids=["", "elastic"])
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_nobody_reads_its_output(number, elastic):
    """A limit and a signal count even if no process reads the output."""
    servers = [] if elastic else ["-s", "0"]
    limit = ["--timeout", "1"] if number is None else []
    with launched(["-n", "1", *servers, *elastic, *limit, "--grace", "1", *ENDLESS]) as launch:
        if number is not None:
            # It runs the job, and has its handlers, as soon as it writes.
            assert select.select([launch.process.stdout], [], [], 60)[0]
            time.sleep(1.0)  # the pipe becomes full
            launch.process.send_signal(number)
        status = launch.process.wait(30)
        assert status == (124 if number is None else 128 + number)
        launch.finish()
        launch.gone(2.0)


@pytest.mark.parametrize("elastic", [[], ["--elastic"]], ids=["", "elastic"])
def test_job_continues_when_its_output_is_on_a_full_disk(elastic):
    servers = [] if elastic else ["-s", "0"]
    code = "import sys\nfor i in range(3): print(i, flush=True)\nprint('e', file=sys.stderr)"
    command = python(code)
    with open("/dev/full", "wb") as full:
        with launched(["-n", "1", *servers, *elastic, *command], stdout=full) as launch:
            assert launch.finish(20.0) == 0
            launch.gone(2.0)
    lines = launch.err.splitlines()
    assert (
        lines.count(
            "hipress-launch: cannot write to standard output: No space left on device; the job "
            "continues, and its output is lost until it can be written"
        )
        == 1
    )
    assert "[worker 0] e" in lines


def test_output_after_a_partial_line_begins_a_line(monkeypatch):
    """Output after a partial line begins a line. The disk has space again after a failed write."""
    read, write = os.pipe()
    real, room = os.write, [7, 0]

    def limited(stream, data):
        size = room.pop(0) if room else len(data)
        if not size:
            raise OSError(28, "No space left on device")
        return real(stream, data[:size])

    monkeypatch.setattr(output.os, "write", limited)
    printer = output.Printer()
    with pytest.raises(OSError, match="No space"):
        printer.lines("a", write, [b"first"])
    printer.lines("a", write, [b"second"])
    os.close(write)
    with os.fdopen(read) as file:
        assert file.read() == "[a] fir\n[a] second\n"


def test_output_that_nobody_reads_is_limited(monkeypatch):
    """Unread output is limited: output of an elastic job's worker stays in memory until the
    launcher reads it."""
    taken = []
    reader = SimpleNamespace(write=lambda data: 0)
    monkeypatch.setattr(supervisor.Tail, "KEPT", 1000)
    tail = supervisor.Tail(reader)
    os.write(tail.file.fileno(), b"x" * 900)
    tail.copy()
    os.write(tail.file.fileno(), b"x" * 900)
    tail.copy()
    reader.write = lambda data: taken.append(data) or len(data)
    assert not tail.copy()
    tail.file.close()
    notice, rest = taken
    assert notice == b"\nhipress-launch: 1300 bytes of output were not read in time: lost\n"
    assert rest == b"x" * 500


def test_output_is_copied_as_soon_as_its_reader_has_space(monkeypatch):
    """Output of an elastic job's worker does not wait for the next poll, in long lines either."""
    real, (read, write), size = select.select, os.pipe(), 1 << 20
    os.set_blocking(read, False)
    process = object.__new__(supervisor.Supervisor)
    process.wake, wake = os.pipe()
    process.relays, process.control, process.persistent = [], None, True
    process.reap = lambda: None
    tail = supervisor.Tail(supervisor.Output(write))
    process.tails = [tail]
    os.write(tail.file.fileno(), b"x" * size)
    tail.copy()

    def never_waits(sources, targets, errors, timeout):
        found = real(sources, targets, errors, 0)
        assert any(found) or not timeout, "waits although there is space"
        return found

    monkeypatch.setattr(supervisor.select, "select", never_waits)
    copied = 0
    while copied < size:
        copied += len(os.read(read, size))
        if copied < size:
            process.serve(None)
    for number in (read, write, process.wake, wake):
        os.close(number)
    tail.file.close()


def test_a_progress_bar_is_relayed_in_states():
    """A progress bar is relayed in states, as under mpirun and srun."""
    (read, write), (seen, target) = os.pipe(), os.pipe()
    relay = supervisor.Relay(read, target, b"[worker 0] ")
    for number in range(200):
        os.write(write, b"\r%d of 200" % number)
        assert relay.copy()
    assert len(relay.rest) < 20
    os.write(write, b"\r200 of 200\ndone")
    os.close(write)
    assert relay.copy() and not relay.copy()
    os.close(target)
    lines = os.fdopen(seen, "rb").read().splitlines()
    os.close(read)
    assert len(lines) < 5 and lines[-1] == b"[worker 0] done"
    assert lines[-2].rpartition(b"\r")[2] == b"200 of 200"


def test_the_plan_is_found_where_it_was_copied_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.txt").touch()

    def found(plan, target):
        return cli.plan_path(argparse.Namespace(comprplan=plan, sync_dst_dir=target))

    assert found("plan.txt", None) == str(tmp_path / "plan.txt")
    assert found("plan.txt", "/tmp/job") == "/tmp/job/plan.txt"
    assert found("plan.txt", "job") == "plan.txt"  # which is in what is their directory there
    with pytest.raises(LaunchError, match="outside of this directory, which --sync-dst-dir copies"):
        found("/etc/hostname", "/tmp/job")


def test_no_address_for_others(monkeypatch):
    monkeypatch.setattr(cli, "of_this_machine", lambda: "127.0.0.1")
    args = argparse.Namespace(host_ip=None, interface=None)
    assert cli.root_address(args, "local", []) == "127.0.0.1"
    with pytest.raises(LaunchError, match="no address that other hosts can reach: --host-ip"):
        cli.root_address(args, "slurm", [])


def test_a_directory_that_is_gone(tmp_path):
    script = f"import os, runpy, sys; os.rmdir({str(tmp_path)!r})\n"
    script += "sys.argv = ['x', '-n', '1', 'x']\n"
    script += f"runpy.run_path({str(LAUNCH)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("hipress-launch: the current directory is gone: ")


@pytest.mark.parametrize("first", range(1, 24))
def test_report_after_a_long_line_is_found_wherever_it_is_cut(first):
    splitter = LineSplitter("a-random-word", limit=1000)
    report = b'a-random-word{"exit": 3}\n'
    lines = splitter.feed(b"x" * 999 + report[:first]) + splitter.feed(report[first:])
    assert b"".join(lines) == b"x" * 999
    assert splitter.reports == [b'{"exit": 3}']
