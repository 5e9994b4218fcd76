"""Runs all benchmarks one after the other; `make bench` calls it."""

from __future__ import annotations

import subprocess
import sys

import typer

from benchmarks.common.options import Quick
from harness import ROOT, netns

LOCAL = ["transport", "pushpull", "codecs", "accuracy", "paper", "smallkeys", "trainer"]
LOCAL += ["collisions"]
SHAPED = ["time-to-accuracy", "simulation", "autoplan", "topologies", "allreduce"]
SHAPED += [f"training --model {model} --rates|100mbit 1gbit 10gbit" for model in ("vgg", "gpt")]
NETWORKS = ("resnet50", "lstm")


def main(quick: Quick = False) -> None:
    shaped = not netns.available()
    if not shaped:
        print(f"no benchmarks of shaped networks: {netns.available()}")
    few = ["--quick"] if quick else []
    commands = [
        ["-m", "benchmarks", *options.split(), *words, *few]
        for options, *words in (line.split("|") for line in [*LOCAL, *(SHAPED if shaped else [])])
    ]
    small = ["--scale", "0.1", "--rounds", "1", "--iterations", "3"] if quick else []
    commands += [
        ["tools/bandwidth/measure.py", "--network", network, "--type", "none", "2bit", "onebit",
         *small]
        for network in NETWORKS
    ]  # fmt: skip
    commands.append(["-m", "benchmarks", "convergence", *few])
    failed = []
    for command in commands:
        print(f"\n== {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode != 0:
            failed.append(" ".join(command))
    if failed:
        print("\nfailed or missed a claim:", *failed, sep="\n")
    raise typer.Exit(bool(failed))
