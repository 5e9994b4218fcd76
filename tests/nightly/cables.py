"""Jobs whose links are cut or slow: they survive cuts, and name the right dead process.

`cut`: a worker's cable is pulled for some seconds in the middle of training; the job must finish.
`stop`: over a slow link that is full of gradients the scheduler is stopped for good; every worker
and the server must end, and name the scheduler.

Run by `make nightly`, each 50 times, several jobs side by side in separate networks.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness import netns  # noqa: E402
from harness.cluster import Cluster  # noqa: E402

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")
TRAIN = Path(__file__).parent / "scripts" / "cables.py"


def train(network: netns.ShapedNetwork, size: int, heartbeat: dict[str, str]) -> Cluster:
    """Start a job of two workers, each in a separate network, and a server on the scheduler's node.

    Args:
        size: elements of its gradient.
        heartbeat: variables; empty for a user's defaults.
    """
    environment = {"SIZE": str(size), "HIPRESS_HEARTBEAT_TIMEOUT_MS": "", **heartbeat}
    job = Cluster(
        TRAIN,
        workers=2,
        servers=1,
        server_command=SERVER,
        network=network,
        env={**environment, "END": "end"},
    )
    for rank in range(2):
        job.wait_for(f"worker {rank}", "running", timeout=90)
    return job


def cut(seconds: float, dice: random.Random, rate: str | None = "1gbit") -> str:
    """Cut a worker's or the server's cable for the given time; return what went wrong."""
    node = dice.choice([0, 1, 2])
    with netns.ShapedNetwork(3, rate=rate, verify=False) as network:
        with train(network, dice.choice([1_000, 250_000]), {}) as job:
            time.sleep(dice.uniform(0, 1))
            network.cut(node)
            time.sleep(seconds)
            network.mend(node)
            time.sleep(1)
            (job.path / "end").touch()
            results = job.wait(60)
    wrong = [
        f"{r.name} exited with {r.returncode}: {r.output[-300:]}" for r in results if r.returncode
    ]
    return f"node {node}: {wrong}" if wrong else ""


def stop_scheduler(dice: random.Random, rate: str = "20mbit", heartbeat_ms: int = 3500) -> str:
    """Stop the scheduler under load; return what went wrong."""
    with netns.ShapedNetwork(3, rate=rate, verify=False) as network:
        with train(network, 400_000, {"HIPRESS_HEARTBEAT_TIMEOUT_MS": str(heartbeat_ms)}) as job:
            time.sleep(dice.uniform(0, 1))
            job.signal("scheduler", signal.SIGSTOP)
            began = time.monotonic()
            survivors = ["server 0", "worker 0", "worker 1"]
            while set(survivors) & set(job.running()):
                if time.monotonic() - began > 40:
                    return f"still running after 40 s: {job.running()}"
                time.sleep(0.05)
            outputs = {name: job.output(name) for name in survivors}
    wrong = {
        name: output[-300:]
        for name, output in outputs.items()
        if "the scheduler" not in output.strip().splitlines()[-1] or "died" not in output
    }
    return f"{wrong}" if wrong else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="cut or stop; default: both")
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0, help="that a cable is cut")
    parser.add_argument("--parallel", type=int, default=4, help="jobs at a time")
    parser.add_argument("--seed", type=int, default=1, help="job i is drawn from seed + i")
    args = parser.parse_args()
    netns.require()
    if set(args.what) - {"cut", "stop"}:
        parser.error(f"{args.what}: there are cut and stop")
    failed = 0
    for what in args.what or ["cut", "stop"]:

        def play(seed: int, what: str = what) -> str:
            dice = random.Random(seed)
            return cut(args.seconds, dice) if what == "cut" else stop_scheduler(dice)

        seeds = range(args.seed, args.seed + args.jobs)
        with ThreadPoolExecutor(args.parallel) as pool:
            for seed, wrong in zip(seeds, pool.map(play, seeds)):
                failed += bool(wrong)
                if wrong:
                    print(f"{what}, seed {seed}: {wrong}", flush=True)
        print(f"{what}: {args.jobs} jobs, {failed} wrong so far", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
