"""One rank that times uncompressed collectives of one FSDP2 module: PyTorch's over Gloo, and ours.

A gather is ``FSDPModule.unshard()``, with FSDP2's copies. Both at once are a gather that begins
before a reduce-scatter, and ends after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report, time_blocks
from benchmarks.training.node import sent_bytes

COLUMNS = 1024


def main() -> None:
    args = options(rows=3072, repetitions=5)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    measure("Gloo", gloo(args.rows), args)
    measure("HiPress", ours(args.rows), args)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def sharded(rows: int):
    """Return a module of one matrix."""
    from torch.distributed.fsdp import fully_shard

    return fully_shard(torch.nn.Linear(COLUMNS, rows, bias=False))


def gloo(rows: int):
    """Return a module, and a reduce-scatter of its gradient over Gloo."""
    flat = torch.zeros(rows * COLUMNS)
    row = torch.zeros(rows * COLUMNS // dist.get_world_size())
    return sharded(rows), lambda: dist.reduce_scatter_tensor(row, flat)


def ours(rows: int):
    """Return a module, and a reduce-scatter of its gradient, both by HiPress."""
    import hipress.torch
    from hipress.torch.gradient import scattered

    module, flat = sharded(rows), torch.zeros(rows * COLUMNS)
    compression = hipress.torch.compress_fsdp(module, "none", gather="exact")
    gradients = tuple(scattered({"weight": (rows, COLUMNS)}, dist.get_world_size()))
    return module, lambda: compression.wait(
        compression.synchronize(flat, gradients, "the benchmark's module")
    )


def measure(name: str, collectives, args) -> None:
    """Time the collectives alone, and both at once."""
    module, reduce_scatter = collectives
    module.unshard()  # initializes FSDP2
    module.reshard()

    def gather(meanwhile: Callable[[], object] = lambda: None) -> None:
        handle = module.unshard(async_op=True)
        meanwhile()
        handle.wait()
        module.reshard()

    size = 4 * args.rows * COLUMNS
    for what, step, count in (
        ("gather", gather, 1),
        ("reduce-scatter", reduce_scatter, 1),
        ("both at once", lambda: gather(reduce_scatter), 2),
    ):
        step()
        sent = []

        def counted(step=step, sent=sent) -> None:
            before = sent_bytes()
            step()
            sent.append(sent_bytes() - before)

        seconds = time_blocks(counted, dist.barrier, args.repetitions)
        report(name=f"{name}, {what}", bytes=count * size, seconds=seconds, sent=sent)


if __name__ == "__main__":
    main()
