"""The `hipress doctor` command: what it reports, and what it classifies as a problem."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import hipress
from hipress.base import addresses
from hipress.cli import doctor
from hipress.native import library

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(ROOT / "python"), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "hipress", "doctor", *arguments],
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path, **variables},
        text=True,
        timeout=60,
        check=False,
    )


def findings_named(name: str) -> doctor.Finding:
    (found,) = [finding for finding in doctor.examine() if finding.name == name]
    return found


def test_report_has_every_subject_and_hides_the_secret():
    done = run(HIPRESS_SECRET="do-not-print", HIPRESS_TIMEOUT="7")
    assert done.returncode == 0, done.stderr
    subjects = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    expected = ["machine", "hipress", "frameworks", "GPU", "kernel", "network", "tools"]
    assert subjects[:7] == expected
    assert subjects[7] in ("problems", "no problems") and subjects[8:] in ([], ["optional parts"])
    assert hipress.__version__ in done.stdout and library.instruction_sets()[1] in done.stdout
    assert "HIPRESS_SECRET=(set)" in done.stdout and "do-not-print" not in done.stdout
    assert "HIPRESS_TIMEOUT='7'" in done.stdout


def test_json_has_the_same_findings():
    done = run("--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {entry["name"] for entry in found} == {entry.name for entry in doctor.examine()}


def test_unusable_library_is_a_problem_and_fails_the_command(tmp_path: Path):
    done = run(HIPRESS_LIBRARY=str(tmp_path / "missing.so"))
    assert done.returncode == 1
    assert re.search(r"native library +libhipress.so is in none of", done.stdout)
    assert "Traceback" not in done.stderr


def test_unsupported_versions_are_problems(monkeypatch: pytest.MonkeyPatch):
    versions = {"torch": "2.5.1+cpu", "mxnet": "1.9.1", "numpy": "1.26.4", "keras": "3.15.1"}
    monkeypatch.setattr(doctor, "_installed", versions.get)
    assert findings_named("torch").problem == (
        "version 2.5.1+cpu is not supported; supported: 2.6 or later"
    )
    assert not findings_named("mxnet").problem and not findings_named("keras").problem
    assert findings_named("numpy").remedy == 'pip install "numpy==1.23.5"'
    assert findings_named("tensorflow").remedy == 'pip install "hipress[tensorflow]"'
    assert findings_named("mxnet").value == "1.9.1, supported"
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    monkeypatch.setattr(doctor, "_installed", {}.get)
    assert findings_named("mxnet").remedy.endswith("with Python 3.11 or earlier")


def test_report_separates_problems_from_optional_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/alice")
    text = doctor.report(
        [
            doctor.Finding("machine", "Python", "3.9 (/home/alice/venv/bin/python)"),
            doctor.Finding("kernel", "open files", "256", "too few", "ulimit -n 4096"),
            doctor.Finding("tools", "ssh", "not installed", "", "install it"),
        ]
    )
    assert text.splitlines() == [
        "machine",
        "  Python      3.9 (~/venv/bin/python)",
        "kernel",
        "  open files  256",
        "tools",
        "  ssh         not installed",
        "problems",
        "  open files  too few",
        "              -> ulimit -n 4096",
        "optional parts",
        "  ssh         install it",
    ]


def test_kernel_features_are_tried(monkeypatch: pytest.MonkeyPatch):
    def refuse(*unused: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setattr(doctor.socket, "TCP_CONGESTION", -1)  # no option of TCP
    assert "Operation not permitted" in findings_named("memfd (shared memory)").problem
    bbr = findings_named("BBR")
    assert bbr.value.startswith("not allowed") and "modprobe tcp_bbr" in bbr.remedy
    assert not bbr.problem


def test_interfaces_are_listed_with_ipv4_and_ipv6_addresses(monkeypatch: pytest.MonkeyPatch):
    found = {socket.AF_INET: "192.0.2.7", socket.AF_INET6: "2001:db8::7"}
    monkeypatch.setattr(addresses, "of_interface", lambda name, family: found[family])
    assert findings_named("lo").value.startswith("up, 192.0.2.7, 2001:db8::7, MTU ")


def test_version_comparison_ignores_suffixes():
    assert doctor.is_supported("2.13.0+cpu", "2.6", None)
    assert doctor.is_supported("2.16.0rc1", "2.16", None)
    assert not doctor.is_supported("1.10.0", "1.9.1", "1.9.1")


def test_supported_versions_are_those_of_the_extras():
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for name in ("torch", "mxnet", "tensorflow"):
        lowest, highest = doctor.SUPPORTED[name]
        (requirement,) = [line for line in extras[name] if line.startswith(name)]
        assert re.match(rf"{name}(==|>=){re.escape(lowest)}(;|$)", requirement)
        assert ("==" in requirement.split(";")[0]) == (highest is not None)


def test_library_and_package_have_the_same_version():
    assert library.version() == hipress.__version__
