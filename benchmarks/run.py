"""Runs all benchmarks one after the other; `make bench` calls it.

    python benchmarks/run.py [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import jobs
from jobs import netns

HERE = Path(__file__).resolve().parent
BANDWIDTH = jobs.ROOT / "tools" / "bandwidth" / "measure.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round, one seed, small networks")
    args = parser.parse_args()
    quick = args.quick
    rounds = ["--rounds", "1", "--iterations", "3"] if quick else []
    seeds = ["--seeds", "0"] if quick else []
    scale = ["--scale", "0.1"] if quick else []
    commands = [[HERE / "pushpull.py", *rounds]]
    commands.append([HERE / "codecs" / "run.py", *(["--seconds", "0.05"] if quick else [])])
    for network in ("resnet50", "lstm"):
        commands.append([BANDWIDTH, "--network", network, "--type", "none", "2bit", "onebit",
                         *rounds, *scale])  # fmt: skip
    commands.append([HERE / "accuracy.py", *seeds])
    small = ["--quick"] if quick else []
    commands.append([HERE / "paper_simulation.py", *small])
    commands.append([HERE / "smallkeys.py", *small])
    if netns.available():
        print(f"no benchmarks of shaped networks: {netns.available()}")
    else:
        commands.append([HERE / "time_to_accuracy.py", *seeds])
        commands.append([HERE / "simulation.py", *small])
        commands.append([HERE / "autoplan.py", *small])
        commands.append([HERE / "topologies.py", *rounds])
        for model in ("vgg", "gpt"):
            commands.append([HERE / "torchtraining.py", "--model", model, "--rates", "100mbit",
                             "1gbit", "10gbit", *(["--steps", "3"] if quick else [])])  # fmt: skip
    commands.append([HERE / "torchconvergence.py",
                     *(["--seeds", "1", "--steps", "50"] if quick else [])])  # fmt: skip
    failed = []
    transport = [str(jobs.ROOT / "build" / "transport_bench"), "1" if quick else "5"]
    print(f"\n== {' '.join(transport)}", flush=True)
    if subprocess.run(transport, check=False).returncode != 0:
        failed.append("transport_bench")
    for script, *options in commands:
        print(f"\n== {script.name} {' '.join(options)}", flush=True)
        if subprocess.run([sys.executable, str(script), *options], check=False).returncode != 0:
            failed.append(script.name)
    if failed:
        print(f"\nfailed or missed a claim: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
