"""Ctrl-C, which ends a process within half a second, whatever it waits for; its peers report it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from ctypes import c_void_p
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.processes import Processes, base_environment, free_port
from hipress.runtime import interrupts, member
from hipress.runtime.member import JobMember
from interrupted_node import AT_EXIT, WAITS

HERE = Path(__file__).parents[1]
SECONDS = 0.5
"""Longest time in seconds from Ctrl-C to KeyboardInterrupt."""
BUSY = 1.0
"""Seconds added to this limit, because a test interrupts all processes at once, on few cores."""


def job_of(wait: str) -> dict:
    """Return a job with one node that waits, for interrupted_peer.py."""
    servers = int(wait in ("command", "save_states", "serve", "controller"))
    lone = wait in ("serve", "scheduler", "controller")
    roles = {
        "connect": [],
        "start": ["scheduler"],
        "serve": ["scheduler", "worker"],
        "controller": ["scheduler", "worker"],
        "scheduler": ["worker"],
    }.get(wait, ["scheduler", "worker", *["server"] * servers])
    options = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": free_port(),
        "DMLC_NUM_WORKER": 1 if lone else 2,
        "DMLC_NUM_SERVER": servers,
    }
    keys = int(wait in ("wait", "wait_all", "leave", "stop", "with block", AT_EXIT))
    return {"name": wait, "roles": roles, "options": options, "keys": keys}


def role_of(wait: str) -> dict[str, str]:
    role = {"serve": "server", "controller": "server", "scheduler": "scheduler"}.get(wait, "worker")
    return {"DMLC_ROLE": role, **({"DMLC_WORKER_ID": "1"} if role == "worker" else {})}


@contextlib.contextmanager
def jobs():
    """Yield the processes, the process with their peers, and a function that starts a node."""
    env = base_environment({"HIPRESS_SECRET": secrets.token_hex(16)})
    with Processes() as processes:
        peers = subprocess.Popen(
            [sys.executable, str(HERE / "interrupted_peer.py")],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def start(wait: str) -> None:
            job = job_of(wait)
            peers.stdin.write(json.dumps(job) + "\n")
            peers.stdin.flush()
            own = {name: str(value) for name, value in job["options"].items()}
            command = [sys.executable, str(HERE / "interrupted_node.py"), wait]
            processes.start(wait, command, {**env, **own, **role_of(wait)})

        try:
            yield processes, peers, start
        finally:
            peers.kill()
            peers.communicate()


@pytest.fixture(scope="module")
def interrupted():
    """Interrupt processes that wait. Return their results, the time of Ctrl-C, the seconds until
    each process ended, and the output of the process with their peers."""
    with jobs() as (processes, peers, start):
        for wait in WAITS:
            start(wait)
        for wait in WAITS:
            processes.wait_for(wait, "waits", 60)
        time.sleep(2.0)  # all have joined and wait
        assert set(processes.running()) == set(WAITS), processes.report()
        began = time.monotonic()
        for wait in WAITS:
            processes.signal(wait, signal.SIGINT)
        ended = {}
        while len(ended) < len(WAITS) and time.monotonic() < began + 20:
            running = set(processes.running())
            for wait in WAITS:
                if wait not in running:
                    ended.setdefault(wait, time.monotonic() - began)
            time.sleep(0.02)
        results = {result.name: result for result in processes.wait(1)}
        time.sleep(0.2)
        peers.kill()
        output = peers.stdout.read()
        yield results, began, ended, output


@pytest.mark.slow
@pytest.mark.parametrize("wait", WAITS)
def test_interrupt_ends_a_wait_within_half_a_second(interrupted, wait):
    results, began, ended, _ = interrupted
    found = re.search(r"interrupted at ([\d.]+)", results[wait].output)
    assert found, results[wait]
    assert float(found[1]) - began < SECONDS + BUSY, results[wait]
    assert ended[wait] < SECONDS + 2 * BUSY, results[wait]
    assert results[wait].returncode == -signal.SIGINT, results[wait]


@pytest.mark.parametrize("wait", [w for w in WAITS if "worker" in job_of(w)["roles"]])
def test_interrupt_of_a_process_is_reported_to_its_peers(interrupted, wait):
    _, _, _, output = interrupted
    name = {"server": "server 0", "scheduler": "the scheduler"}.get(
        role_of(wait)["DMLC_ROLE"], "worker 1"
    )
    failures = [line for line in output.splitlines() if line.startswith(f"{wait}: failed: ")]
    assert len(failures) == 1 and name in failures[0], output


def test_init_after_an_interrupted_init_reports_the_interrupt(interrupted):
    results, _, _, output = interrupted
    sentence = "worker 1 was interrupted while it initialized key '0'"
    assert f"second init: {sentence}\n" in results["init"].output, results["init"]
    assert f"init: failed: {sentence}\n" in output


def test_second_interrupt_does_not_crash_a_server_that_leaves():
    with jobs() as (processes, peers, start):
        start("serve")
        assert peers.stdout.readline() == "serve: ready\n"
        time.sleep(0.5)  # the server waits in serve()
        peers.send_signal(signal.SIGSTOP)  # the server's farewell takes longer
        processes.signal("serve", signal.SIGINT)
        time.sleep(0.3)
        processes.signal("serve", signal.SIGINT)
        (result,) = processes.wait(20)
        assert result.returncode == -signal.SIGINT, result


def test_interrupt_at_process_exit_is_a_failure():
    with jobs() as (processes, peers, start):
        start(AT_EXIT)
        assert peers.stdout.readline() == "exit: ready\n"
        time.sleep(0.5)  # the exit handler waits for worker 0's gradient
        processes.signal(AT_EXIT, signal.SIGINT)
        (result,) = processes.wait(20)
        assert result.returncode == 1, result
        assert "KeyboardInterrupt" in result.output
        failure = peers.stdout.readline()
        assert failure.startswith("exit: failed: ") and "worker 1" in failure


class _NoOperations:
    def interrupt(self) -> None:
        pass


def _wakeup_descriptor_of_a_child() -> int:
    """Return the wakeup file descriptor of a forked child."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(sender, str(signal.set_wakeup_fd(-1)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = int(os.read(receiver, 16))
    os.close(receiver)
    os.close(sender)
    return found


def test_forked_child_keeps_the_wakeup_descriptor_of_the_program():
    node = _NoOperations()
    before = signal.set_wakeup_fd(-1)
    try:
        interrupts.watch(node)
        assert _wakeup_descriptor_of_a_child() == -1
        with socket.socket() as program:
            program.setblocking(False)
            own = signal.set_wakeup_fd(program.fileno())
            assert own == interrupts._wakeup.fileno()
            assert _wakeup_descriptor_of_a_child() == program.fileno()
            signal.set_wakeup_fd(own, warn_on_full_buffer=False)
    finally:
        signal.set_wakeup_fd(before)


def test_second_node_keeps_warnings_of_the_wakeup_descriptor_off(monkeypatch):
    node = _NoOperations()
    before = signal.set_wakeup_fd(-1)
    try:
        interrupts.watch(node)
        warn = []

        def set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
            warn.append(warn_on_full_buffer)
            return set_it(fd, warn_on_full_buffer=warn_on_full_buffer)

        set_it = signal.set_wakeup_fd
        monkeypatch.setattr(signal, "set_wakeup_fd", set_wakeup_fd)
        interrupts.watch(node)
        assert warn == [False, False]
    finally:
        monkeypatch.undo()
        signal.set_wakeup_fd(before)


def test_node_is_not_freed_while_it_is_interrupted(monkeypatch):
    """A node is not freed while it is interrupted: free() on the main thread waits for interrupt()
    on another."""
    node = JobMember.__new__(JobMember)
    node._handle, node._freeing = c_void_p(1), threading.Lock()
    node._end = SimpleNamespace(left=False, forked=False)
    calls, interrupting = [], threading.Event()

    def fail_pending(handle: c_void_p, sentence: bytes) -> None:
        node._end.left = True
        interrupting.set()
        time.sleep(0.2)
        calls.append("interrupted")

    library = SimpleNamespace(
        HipressFailPending=fail_pending, HipressFree=lambda handle: calls.append("freed")
    )
    monkeypatch.setattr(member, "lib", library)
    monkeypatch.setattr(JobMember, "name", "worker 0")
    thread = threading.Thread(target=node.interrupt)
    thread.start()
    assert interrupting.wait(10)
    node.free()
    thread.join(10)
    assert calls == ["interrupted", "freed"]
