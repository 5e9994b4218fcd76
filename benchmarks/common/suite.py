"""Runner of all benchmarks, one after the other; `make bench` calls it."""

from __future__ import annotations

import subprocess
import sys

import typer

from benchmarks.common.options import Quick
from harness import ROOT, netns

LOCAL = ["transport", "pushpull", "codecs", "accuracy", "paper", "smallkeys", "trainer"]
LOCAL += ["collisions", "convergence", "feedback", "setups"]
SHAPED = ["time-to-accuracy", "simulation", "autoplan", "topologies", "allreduce", "quality"]
SHAPED += ["congestion"]
RATES = "100mbit 1gbit 10gbit"


def main(quick: Quick = False) -> None:
    commands = [[name] for name in LOCAL]
    if netns.available():
        print(f"no benchmarks of shaped networks: {netns.available()}")
    else:
        commands += [[name] for name in SHAPED]
        commands += [["training", "--model", m, "--rates", RATES] for m in ("vgg", "gpt")]
    few = ["--quick"] if quick else []
    commands = [["-m", "benchmarks", *command, *few] for command in commands]
    small = ["--scale", "0.1", "--rounds", "1", "--iterations", "3"] if quick else []
    for network in ("resnet50", "lstm"):
        tool = ["tools/bandwidth/measure.py", "--network", network]
        commands.append([*tool, "--type", "none", "2bit", "onebit", *small])
    failed = []
    for command in commands:
        print(f"\n== {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode != 0:
            failed.append(" ".join(command))
    if failed:
        print("\nfailed or missed a claim:", *failed, sep="\n")
    raise typer.Exit(bool(failed))
