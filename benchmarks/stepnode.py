"""One node of a measured step: pushes and pulls gradients of given sizes, without a framework.

Runs in every role. A worker reports the seconds of steps: alone, each from a barrier to the last
result, and `--blocks` times `--in-a-row` without one.

    python stepnode.py --sizes '{"w": 1000000, "b": 64}' --params '{"type": "tbq"}'
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from hipress.node import Node

sys.path.insert(0, str(Path(__file__).resolve().parent))

from jobs import report, time_blocks  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", required=True, help="JSON: elements by gradient, forward order")
    parser.add_argument("--params", default="{}", help="JSON for set_gradient_compression")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=7, help="steps alone")
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--in-a-row", type=int, default=10, help="steps of a block")
    args = parser.parse_args()
    node = Node()
    if node.role != "worker":
        node.serve()
        node.stop()
        return
    sizes = json.loads(args.sizes)
    node.set_gradient_compression(json.loads(args.params))
    random = np.random.default_rng(node.rank)
    gradients = [random.standard_normal(n, dtype=np.float32) for n in sizes.values()]
    outs = [np.empty_like(gradient) for gradient in gradients]
    for key, (name, out) in enumerate(zip(sizes, outs)):
        node.init_array(key, out, name)

    def step() -> None:
        # The last layer's gradient is there first, the first layer's is most urgent.
        pending = [
            node.pushpull(key, gradients[key], outs[key], priority=-key)
            for key in reversed(range(len(gradients)))
        ]
        for operation in pending:
            operation.wait(60)

    time_blocks(step, node.barrier, args.warmup)
    report(
        rank=node.rank,
        seconds=time_blocks(step, node.barrier, args.iterations),
        in_a_row=time_blocks(step, node.barrier, args.blocks, args.in_a_row),
    )
    node.barrier()
    node.stop()


if __name__ == "__main__":
    main()
