"""One rank of diloco.py, which trains a GPT with some methods in turn and reports step times.

A GPU's forward and backward pass is simulated by sleeping, in total ``compute`` seconds, before
each block's own pass on a short text. A method is "alone" (nothing is sent), "diloco
TYPE:NAME=VALUE," with DiLoCo's ``fragments`` and ``delay`` among the values, "torchft NAME=VALUE,"
(torchft's DiLoCo, with these two values), or one of node.py's, which synchronize in each step.

With several ranks per site, these average gradients in each step, by DistributedDataParallel. If
the method begins with "fsdp ", FSDP2 shards the model over them instead.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from benchmarks.common.timing import options, report, time_blocks
from benchmarks.training import node, torchft_peer
from harness import ROOT
from hipress.base import addresses

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text

DILOCO, TORCHFT, FSDP = "diloco ", "torchft ", "fsdp "
WARMUP = 4
"""Number of steps. PyTorch's PowerSGD sends all of its first two."""


def main() -> None:
    args = options()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for method in args.methods:
        report(method=method, rank=dist.get_rank(), **run(method, args))
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def run(method: str, args) -> dict:
    sharded, method = method.startswith(FSDP), method.removeprefix(FSDP)
    torch.manual_seed(0)
    data = text.Text()
    model = text.make("gpt", len(data.characters), width=args.width, layers=4)
    blocks = [m for m in model.modules() if type(m).__name__ == "Block"]
    for block in blocks:  # a third of the time is the forward pass
        pause = args.compute / len(blocks) / 3
        block.register_forward_pre_hook(lambda *_, pause=pause: time.sleep(pause))
        block.register_full_backward_pre_hook(lambda *_, pause=pause: time.sleep(2 * pause))
    sizes = [p.numel() for p in model.parameters()]
    own, group, site = 0, None, dist.get_rank()
    if args.ranks_per_site > 1:
        shape = dist.get_world_size() // args.ranks_per_site, args.ranks_per_site
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("site", "shard"))
        (site, own), group = mesh.get_coordinate(), mesh["site"].get_group()
        if sharded:
            for block in blocks:
                fully_shard(block, mesh=mesh["shard"])
            fully_shard(model, mesh=mesh["shard"])
        else:
            model = DistributedDataParallel(model, process_group=mesh["shard"].get_group())
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(site)
    synchronizing: contextlib.AbstractContextManager = contextlib.nullcontext()
    rounds = method.startswith((DILOCO, TORCHFT))
    if method.startswith(DILOCO):
        synchronizing = diloco(method, model, optimizer, args, group)
    elif method.startswith(TORCHFT):
        synchronizing = torchft(method, model, optimizer, args)
    elif method != node.ALONE:
        model = node.replicated(model, method)
        node.attach(model, method, 0)

    def step() -> None:
        optimizer.zero_grad()
        batch = data.batch(args.ranks_per_site, generator)[own : own + 1, :17]
        loss = text.loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    losses: list[float] = []
    steps = args.sync_every if rounds else args.steps
    with synchronizing:
        time_blocks(step, dist.barrier, 1, steps if rounds else WARMUP)
        seconds = time_blocks(step, dist.barrier, args.blocks, steps)
    said = str(synchronizing.compression.explain()) if method.startswith(DILOCO) else ""
    return {"seconds": seconds, "sizes": sizes, "said": said, "losses": losses}


def outer(parameters) -> torch.optim.Optimizer:
    """Return DiLoCo's outer optimizer (arXiv 2311.08105)."""
    return torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)


def diloco(method: str, model, optimizer, args, group) -> hipress.torch.DiLoCo:
    name, _, rest = method.removeprefix(DILOCO).partition(":")
    values = node.values_of(rest)
    fragments, delay = values.pop("fragments", None), values.pop("delay", None)
    return hipress.torch.DiLoCo(
        model,
        optimizer,
        outer(model.parameters()),
        args.sync_every,
        fragments=fragments,
        fragment_sync_delay=delay,
        compression={"type": name, **values},
        group=group,
    )


def torchft(method: str, model, optimizer, args) -> contextlib.AbstractContextManager:
    """Return torchft's DiLoCo, uncompressed over Gloo, with the lighthouse in rank 0's process."""
    values = node.values_of(method.removeprefix(TORCHFT))
    host = addresses.of_interface(os.environ["GLOO_SOCKET_IFNAME"])
    manager = torchft_peer.manager(
        host,
        f"rank{dist.get_rank()}",
        dist.get_world_size(),
        seconds=600.0,
        lighthouse_addr=torchft_peer.lighthouse(host),
        load_state_dict=None,
        state_dict=None,
        use_async_quorum=False,
    )
    from torchft.local_sgd import DiLoCo

    count = values.get("fragments", 1)
    parts = [torch.nn.ModuleList() for _ in range(count)]
    parts[0].extend([model.embed, model.place])
    for number_of, block in enumerate(model.blocks):
        parts[number_of * count // len(model.blocks)].append(block)
    parts[-1].extend([model.norm, model.head])
    return DiLoCo(
        manager,
        parts,
        optimizer,
        [outer(part.parameters()) for part in parts],
        args.sync_every,
        fragment_sync_delay=values.get("delay", 0),
    )


if __name__ == "__main__":
    main()
