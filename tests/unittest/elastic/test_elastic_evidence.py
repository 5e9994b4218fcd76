"""Evidence of this host's kernel that a process has ended, or that no process listens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from hipress.elastic.membership import evidence
from hipress.elastic.membership.view import NO_PROCESS, Process
from scripts import SCRIPTS

HERE = "127.0.0.1"
CODE = SCRIPTS / "elastic_evidence" / "this_process.py"


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen, Process]]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(CODE)],
        env=env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as started:
        try:
            boot, namespace, pid, start = started.stdout.readline().split("\t")
            yield started, Process(boot, namespace, int(pid), int(start))
        finally:
            started.kill()


def test_killed_process_has_ended(child: tuple[subprocess.Popen, Process]) -> None:
    started, process = child
    assert evidence.is_of_this_host(process, HERE) and not evidence.has_ended(process, HERE)
    started.kill()
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    assert evidence.has_ended(process, HERE)  # though its parent has not waited for it
    started.wait()
    assert evidence.has_ended(process, HERE)


def test_another_process_with_the_same_id_is_recognized() -> None:
    own = evidence.this_process()
    assert not evidence.has_ended(own, HERE)
    assert evidence.has_ended(replace(own, start=own.start - 1), HERE)


@pytest.mark.parametrize("name", ["boot", "namespace"])
def test_processes_of_other_hosts_prove_nothing(
    child: tuple[subprocess.Popen, Process], name: str
) -> None:
    started, process = child
    started.kill()
    started.wait()
    assert not evidence.has_ended(replace(process, **{name: "another"}), HERE)
    assert not evidence.has_ended(NO_PROCESS, HERE)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_address_is_vacant_until_a_process_listens(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio does
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine does not have {host}")
        port = listener.getsockname()[1]
        listener.listen()
        assert not evidence.is_vacant(host, port)
        with socket.create_connection((host, port)):
            accepted, _ = listener.accept()
            listener.close()
            with accepted:
                assert evidence.is_vacant(host, port)
    assert evidence.is_vacant(host, port)


def test_process_of_a_cloned_machine_proves_nothing(
    child: tuple[subprocess.Popen, Process],
) -> None:
    # Clones of one snapshot have the same boot id and namespaces, but other addresses.
    started, process = child
    started.kill()
    started.wait(20)
    assert not evidence.has_ended(process, "192.0.2.1")
    assert not evidence.has_ended(process, "")


def test_address_of_another_host_is_never_vacant() -> None:
    assert not evidence.is_vacant("192.0.2.1", 9)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "::ffff:127.0.0.1"])
def test_loopback_addresses_are_own_addresses(host: str) -> None:
    assert evidence.is_own_address(host)  # 127.0.1.1 is the own name's address under Debian


@pytest.mark.parametrize(
    "host", ["", "worker-a", "0.0.0.0", "::", "224.0.0.1", "192.0.2.1", "2001:db8::1"]
)
@pytest.mark.parametrize("binds", [True, False])
def test_addresses_of_no_host_and_of_others_are_not_own_addresses(
    host: str, binds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = evidence._binds_own_addresses_only
    monkeypatch.setattr(
        evidence, "_binds_own_addresses_only", lambda version: binds and real(version)
    )
    assert not evidence.is_own_address(host)


def test_secondary_addresses_are_own_addresses() -> None:
    script = SCRIPTS / "elastic_evidence" / "secondary_addresses.py"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "[" not in done.stdout:
        pytest.skip(f"no network namespace of its own: {done.stderr.strip()[-200:]}")
    assert done.stdout.strip() == "[True, True, False]"
