"""The `hipress` command: all of its subcommands, and their older names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hipress.cli import main

ROOT = Path(__file__).resolve().parents[3]
SPEC = ROOT / "python/hipress/compression/compiler/specs/onebit.cll"


def run(*command: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(ROOT / "python"), *sys.path])
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_help_lists_all_commands():
    done = run("-m", "hipress", "--help")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.split("Commands:")[1].splitlines() if line] == [
        "launch",
        "profile",
        "plan",
        "simulate",
        "explain",
        "report",
        "bench",
        "compile",
        "codecs",
        "doctor",
        "debug",
    ]


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help_that_names_it(name):
    done = run("-m", "hipress", name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"hipress {name}" in done.stdout


@pytest.mark.parametrize(
    "launch", [("-m", "hipress", "launch"), ("-m", "hipress.launch"), ("tools/launch.py",)]
)
def test_launch_hands_on_arguments_output_and_status(launch):
    script = 'test "$DMLC_ROLE" = worker || exit 0; echo "$@"; exit 3'
    command = ("sh", "-c", script, "-", "-H", "--help", "x y")
    done = run(*launch, "-n", "1", "-s", "0", "--", *command)
    assert "[worker 0] -H --help x y" in done.stdout
    assert done.returncode == 3


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "compile", [("-m", "hipress", "compile"), ("-m", "hipress.compression.compiler.cli")]
)
def test_compile_is_compll(compile):
    done = run(*compile, "--show-ir", str(SPEC))
    assert done.returncode == 0 and "onebit" in done.stdout
    assert run(*compile, "check", str(SPEC)).returncode == 0
    assert run(*compile, "missing.cll").returncode == 1
