"""Shared fixtures and options of all tests."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import warm
from harness.launch import Sshd

warm.enable()
# Tests, and processes that they start, import helpers of this folder and of other tests.
_here = Path(__file__).parent
_folders = sorted({str(path.parent) for path in _here.rglob("test_*.py")})
sys.path.extend(_folders)
_paths = [os.environ.get("PYTHONPATH"), str(_here), *_folders]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _paths))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=("quick", "slow", "all"),
        default="all",
        help="quick: tests without the mark slow, as `make test` runs them; slow: those with it",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "slow(keep=0): `make test` leaves it out, but for its first `keep` cases; `make test-all` "
        "runs it",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of the tier that was asked for."""
    tier = config.getoption("--tier")
    if tier == "all":
        return
    seen: Counter[str] = Counter()
    slow: dict[bool, list[pytest.Item]] = {False: [], True: []}
    for item in items:
        mark = item.get_closest_marker("slow")
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        slow[mark is not None and seen[function] > mark.kwargs.get("keep", 0)].append(item)
    items[:] = slow[tier == "slow"]
    config.hook.pytest_deselected(items=slow[tier != "slow"])


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Provide a real sshd on loopback."""
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
    """Provide a folder for what supervisors leave if their launcher has ended. Its name is short,
    as mpirun also has sockets there."""
    with tempfile.TemporaryDirectory(prefix="hp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder
