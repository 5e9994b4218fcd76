"""`hipress bench allreduce` on shaped networks: float32, bfloat16 and compressed all-reduces.

    python benchmarks/torchallreduce.py --rates 100mbit 1gbit 10gbit --compression onebit

Every node is a network namespace with one process. Prints the tables and writes them to
output/benchmarks. Needs root.
"""

from __future__ import annotations

import argparse
import sys

import jobs
from harness.netns import ShapedNetwork


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", nargs="+", default=["1gbit"], metavar="RATE")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--compression", nargs="+", default=["onebit", "maxmin"])
    parser.add_argument("--largest", default="64M")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--priority", action="store_true", help="before this machine's other work")
    args = parser.parse_args()
    jobs.clean_up_when_terminated()
    tables: dict[str, list[str]] = {}
    result = {"machine": jobs.machine(), "tables": tables}
    print(result["machine"])
    for rate in args.rates:
        with ShapedNetwork(args.nodes, rate=rate, verify=False) as network:
            for type in args.compression:
                command = [sys.executable, "-m", "hipress", "bench", "allreduce", "-b", "64K"]
                command += ["-e", args.largest, "-f", "4", "-n", str(args.iterations), "-w", "2"]
                command += ["-c", type]
                print(f"\n{rate}")
                results = jobs.run_torch_job(command, args.nodes, network, 300, args.priority)
                found = results[0].output
                print(found, flush=True)
                tables.setdefault(rate, []).append(found)
    jobs.save("torchallreduce", result)


if __name__ == "__main__":
    main()
