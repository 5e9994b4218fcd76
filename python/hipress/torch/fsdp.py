"""Compressed gradients in FSDP2: in the reduce-scatter, and between hosts in HSDP's all-reduce."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
from torch.distributed.tensor import DTensor

from hipress.casync.graph import GRADIENT, Graph, Op, Partition, cut, worker
from hipress.torch.engine import Engine, HipressError
from hipress.torch.layout import Gradient
from hipress.torch.settings import MIN_SIZE, Settings, agree
from hipress.torch.synchronizer import Synchronizer, group_timeout

PARTITION_ELEMENTS = 256 * 1024


def reduce_scatter(count: int, num_workers: int) -> Graph:
    """The graph that leaves worker r with the sum of its part, the r-th of ``num_workers`` equal
    ones: every worker encodes all parts, each for its owner, who merges them in rank order."""
    part = count // num_workers
    cuts: list[tuple[int, Partition]] = [
        (owner, piece)
        for owner in range(num_workers)
        for piece in cut(owner * part, (owner + 1) * part, PARTITION_ELEMENTS, 64)
    ]
    graph = Graph(count, [piece for _, piece in cuts])
    for p, (owner, _) in enumerate(cuts):
        at, payloads = worker(owner), []
        for rank in range(num_workers):
            payload = graph.add(worker(rank), Op.ENCODE, p, GRADIENT)
            if rank != owner:
                graph.add(worker(rank), Op.SEND, p, payload, peer=at)
                payload = graph.add(at, Op.RECV, p, peer=worker(rank))
            payloads.append(payload)
        graph.add(at, Op.DECODE, p, graph.add(at, Op.MERGE, p, *payloads))
    return graph


class _Scatter(Synchronizer):
    """Reduce-scatters of modules' gradients, each with a residual of its own."""

    def graph(self, gradient: Gradient) -> Graph:
        return reduce_scatter(gradient.count, self.engine.world_size)


class ShardedCompression:
    """What :func:`compress_fsdp` returns.

    ``state_dict()`` holds this rank's residuals; it can be loaded into a job of the same ranks.
    """

    def __init__(self, settings: Settings, timeout: float | None) -> None:
        self.settings, self._timeout = settings, timeout
        self._synchronizers: dict[str, Synchronizer] = {}
        self._loaded: dict[str, dict[str, Any]] = {}

    def synchronizer(self, kind: type[Synchronizer], group: dist.ProcessGroup) -> Synchronizer:
        """The one of a group; made when all its ranks first need it."""
        ranks = ".".join(map(str, dist.get_process_group_ranks(group)))
        key = f"{kind.__name__}-{ranks}"
        if key not in self._synchronizers:
            engine = Engine(group, self._timeout or group_timeout(group))
            made = self._synchronizers[key] = kind(self.settings, engine, group, {})
            if key in self._loaded:
                made.load_state_dict(self._loaded.pop(key))
        return self._synchronizers[key]

    def state_dict(self) -> dict[str, Any]:
        return {
            f"{key}:{name}": value
            for key, synchronizer in self._synchronizers.items()
            for name, value in synchronizer.state_dict().items()
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """To be called before the first step."""
        for full, value in saved.items():
            key, _, name = full.partition(":")
            self._loaded.setdefault(key, {})[name] = value


class _ReduceScatter(ReduceScatter):
    """FSDP2's reduce-scatter of one module's gradients."""

    def __init__(self, name: str, compression: ShardedCompression) -> None:
        self._name, self._compression = name, compression

    def allocate(self, size, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        count, world_size = input_tensor.numel(), dist.get_world_size(group)
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise HipressError(f"gradients can be summed or averaged, not reduced by {op}")
        part = count // world_size
        if part < self._compression.settings.min_size:
            whole = input_tensor.clone()  # Gloo has no average
            if op == dist.ReduceOp.AVG:
                whole.div_(world_size)
            dist.all_reduce(whole, group=group)
            output_tensor.copy_(whole.view(world_size, -1)[dist.get_rank(group)])
            return None
        synchronizer = self._compression.synchronizer(_Scatter, group)
        _wait(synchronizer, input_tensor, self._name)
        mine = input_tensor.view(world_size, -1)[dist.get_rank(group)]
        output_tensor.copy_(mine)
        if op == dist.ReduceOp.SUM:
            output_tensor.mul_(world_size)
        return None


def _wait(synchronizer: Synchronizer, flat: torch.Tensor, name: str) -> None:
    synchronizer.synchronize(flat, ((name, 0, flat.numel()),), f"module {name!r}").wait()


def compress_fsdp(
    model: FSDPModule,
    type: str,
    *,
    min_size: int = MIN_SIZE,
    replicate_group: dist.ProcessGroup | None = None,
    replicate_topology: str = "ps",
    timeout: float | None = None,
    **params: object,
) -> ShardedCompression:
    """Makes a ``fully_shard``-ed model reduce-scatter compressed gradients.

    >>> for layer in model.layers: fully_shard(layer)
    >>> hipress.torch.compress_fsdp(fully_shard(model), "maxmin", bits=8)

    A module's gradients are encoded together, in the flat form in which FSDP2 hands them over, so
    codecs with one scale for everything (onebit) suit it less than those with buckets (maxmin).
    To be called on every rank, before the first backward pass.

    :param min_size: modules whose shards have fewer elements go uncompressed
    :param replicate_group: for hybrid sharding over slow links: the model is sharded inside each
        host, uncompressed, and this group's ranks, one per host with the same shard, average
        compressed shards
    :param replicate_topology: of that average, see :func:`compress`
    :param timeout: seconds to wait for another rank; default: the process group's
    :param params: the codec's own parameters
    :raises ValueError: on every rank, if any rank's name or value is wrong or they differ
    :raises TypeError: if the model is not a fully_shard-ed one
    """
    if not isinstance(model, FSDPModule):
        raise TypeError(
            f"compress_fsdp() takes a model after fully_shard(), not {model.__class__.__name__} "
            "(for DistributedDataParallel there is hipress.torch.compress)"
        )
    settings, problem = None, ""
    try:
        settings = Settings(type, params, replicate_topology, min_size)
    except (ValueError, TypeError) as error:
        problem = str(error)
    mesh = next(p.device_mesh for p in model.parameters() if isinstance(p, DTensor))
    agree(replicate_group or mesh.get_group(0), settings.describe() if settings else {}, problem)
    compression = ShardedCompression(settings, timeout)
    for name, module in model.named_modules():
        if not isinstance(module, FSDPModule):
            continue
        if replicate_group is None:
            module.set_custom_reduce_scatter(_ReduceScatter(name, compression))
        else:
            module.set_all_reduce_hook(_hook(name, compression, replicate_group))
    return compression


def _hook(name: str, compression: ShardedCompression, group: dist.ProcessGroup):
    def hook(shard: torch.Tensor) -> None:
        _wait(compression.synchronizer(Synchronizer, group), shard, name)

    return hook
