"""What all tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from harness import warm
from harness.launch import Sshd

warm.enable()


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A real one on loopback."""
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    if server.path is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("sshd, ssh or ssh-keygen is not installed (Debian: openssh-server)")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """For what supervisors leave if their launcher is gone; a short name, as mpirun has sockets
    there, too."""
    with tempfile.TemporaryDirectory(prefix="hp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder
