"""Sites: ranks that hold the shards of one copy of a model, and agree on what they synchronize.

A rank of a site exchanges its shards with its *counterparts*, the ranks of the other sites that
hold the same shards. Each of these exchanges may fail or have a NaN alone. So the ranks of a site
compare their results before one of them changes a weight. They do that on the process groups of the
device mesh over which the parameters are sharded.

This module has nothing to do with gradients: FSDP2 or tensor parallelism reduces these inside a
site.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist

from hipress.errors import HipressError
from hipress.torch import exchange, private
from hipress.torch.autotune.reductions import GroupReductions, failing
from hipress.torch.dtypes import is_dtensor, local_of
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.integrations.checks import group_of, refuse_replicated
from hipress.torch.settings import Settings, agree


class Site:
    """Ranks over which a model's parameters are sharded. Without shards, this rank alone.

    Args:
        named: Parameters with their names, in an order that is the same on all ranks.
    """

    def __init__(self, named: Iterable[tuple[str, torch.Tensor]] = ()) -> None:
        meshes = [p.device_mesh for _, p in named if is_dtensor(p)]
        largest = max(meshes, key=lambda mesh: mesh.size(), default=None)
        self.ranks = [dist.get_rank()] if largest is None and dist.is_initialized() else []
        """Global ranks of the site."""
        self._groups: list[dist.ProcessGroup] = []
        if largest is not None:
            self.ranks = largest.mesh.flatten().tolist()
            groups = [largest.get_group(dim) for dim in range(largest.ndim)]
            self._groups = [group for group in groups if dist.get_world_size(group) > 1]

    @property
    def is_sharded(self) -> bool:
        """Whether the site has several ranks."""
        return bool(self._groups)

    def __str__(self) -> str:
        if not self.is_sharded:
            return "whole"
        return f"{self.ranks.index(dist.get_rank())} of {len(self.ranks)}"

    def max(self, values: Sequence[float]) -> list[float]:
        """Return the maxima of some numbers over the ranks of the site, which all call this.

        Raises:
            HipressError: If a rank of the site has died or is silent.
        """
        result = list(values)
        for group in self._groups if result else ():  # one for each dimension of the mesh
            numbers = torch.tensor(result, dtype=torch.float64, device=private.device_of(group))
            try:
                dist.all_reduce(numbers, dist.ReduceOp.MAX, group)
            except RuntimeError as error:  # from Gloo
                first = str(error).splitlines()[0]
                raise HipressError(
                    f"a rank of the site of rank {dist.get_rank()} has died or is too far behind "
                    f"({first})"
                ) from error
            result = numbers.tolist()
        return result

    def all(self, value: bool) -> bool:
        """Return whether ``value`` is true on all ranks of the site; see :meth:`max`."""
        return not self.max([not value])[0]

    def largest_shards(
        self, named: Iterable[tuple[str, torch.Tensor]]
    ) -> dict[str, tuple[int, ...]]:
        """Return for each parameter the largest size of its shards in each dimension."""
        shapes = {name: tuple(local_of(p).shape) for name, p in named}
        sizes = iter(self.max([size for shape in shapes.values() for size in shape]))
        return {name: tuple(int(next(sizes)) for _ in shape) for name, shape in shapes.items()}

    def settle(
        self,
        error: Exception | None,
        values: Sequence[float],
        engine: ProcessGroupEngine,
        what: str,
    ) -> list[float]:
        """Return the maxima of ``values``, or raise an error on all ranks if any rank has one.

        All ranks of the site call this. If one has an error, each also reports it to its
        counterparts.

        Args:
            error: This rank's error.
            values: Numbers that are used if no rank has an error.
            engine: Engine of this rank and its counterparts.
            what: What has failed, for the message.
        """
        if not self._groups:
            if error is not None:
                raise error
            return list(values)
        error, result = error or engine.error, [1.0]
        try:
            result = self.max([error is not None, *values])
        except HipressError as lost:
            error = error or lost
        if not result[0]:
            return result[1:]
        error = error or HipressError(
            f"it failed on another rank of the site of rank {dist.get_rank()}, whose error names "
            "the cause; no rank of the site has used the result"
        )
        failed = engine.fail(error, what)
        if failed is error:  # an error must not be its own cause
            raise failed
        raise failed from error

    def agree(self, make_settings: Callable[[], Settings], **same: str) -> Settings:
        """Return the settings, or raise the error of any rank of the site, which all call this.

        Args:
            make_settings: Checks this rank's arguments.
            same: Other texts that must be the same on all ranks of the site, by name.

        Raises:
            ValueError: If the ranks differ, or ``make_settings`` raises an error on any of them.
        """
        settings, problem = None, ""
        try:
            settings = make_settings()
            same = {**same, **settings.describe()}
        except Exception as error:  # the other ranks of the site wait for this rank
            problem = str(error) or repr(error)
        for group in self._groups:
            try:
                agree(group, same, problem)
            except ValueError as error:
                problem = problem or str(error)
        if problem:
            raise ValueError(problem)
        return settings


class SiteReductions(GroupReductions):
    """Reductions over all ranks of all sites: those with the same shard, and then those of a site.

    Args:
        site: This rank's site.
        engine: Engine of this rank and its counterparts.
        group: Their process group.
        device: Device of the numbers.
    """

    def __init__(
        self, site: Site, engine: ProcessGroupEngine, group: dist.ProcessGroup, device: torch.device
    ) -> None:
        super().__init__(engine, group, device)
        self._site = site

    def end_max(self, begun: tuple[dist.Work, torch.Tensor]) -> list[float]:
        """Return the maxima over the ranks with the same shard, and then the largest of all shards.

        Negative numbers are compared by their size there. They are times whose minimum over the
        ranks with the same shard is sought, and the slowest shard's counts.
        """
        found = super().end_max(begun)
        with failing(self._engine):
            sizes = self._site.max([abs(each) for each in found])
        return [math.copysign(size, each) for size, each in zip(sizes, found)]


def group_of_shards(
    named: Iterable[tuple[str, torch.Tensor]], group: dist.ProcessGroup | None, who: str
) -> dist.ProcessGroup:
    """Return the group that a user gave, or the default one.

    That is all ranks, or for sharded parameters the ranks with the same shard, one of each site. It
    is made on all ranks together, if the sites contain all ranks. Otherwise :func:`check_shards`
    raises the error.

    Args:
        named: All parameters.
        group: The user's group, or None.
        who: What the user called.
    """
    whole = group_of(group, who)
    site = Site(named)
    if group is not None or not site.is_sharded:
        return whole
    found = exchange.gather(whole, site.ranks, "ranks of sites", list[int])
    sites = sorted(map(list, set(map(tuple, found))))
    every = sorted(rank for ranks in sites for rank in ranks)
    alike = len(set(map(len, sites))) == 1 and every == list(range(dist.get_world_size()))
    if not alike or len(sites) == 1:
        return whole
    mine, _ = dist.new_subgroups_by_enumeration([list(ranks) for ranks in zip(*sites)])
    return mine


def check_shards(
    named: Iterable[tuple[str, torch.Tensor]], group: dist.ProcessGroup, who: str
) -> None:
    """Check that no two ranks of ``group`` hold shards of one copy of a parameter.

    Args:
        named: All parameters, also frozen ones.
        group: The group of ranks that exchange weights or gradients.
        who: What the user called.

    Raises:
        ValueError: If two do, or a parameter is a partial sum.
    """
    ours, covered = set(dist.get_process_group_ranks(group)), set()
    sharded = [(name, p) for name, p in named if is_dtensor(p)]
    for name, parameter in sharded:
        ranks = parameter.device_mesh.mesh.flatten().tolist()
        common = sorted(ours.intersection(ranks))
        if ours.issuperset(ranks):  # whose gradients replicate() averages
            refuse_replicated([(name, parameter)])
        if len(common) > 1:
            raise ValueError(
                f"parameter {name!r} is sharded over ranks {common} of the group of {who}: shard "
                "the model over the ranks of one site, and give group= the ranks with the same "
                "shard, one of each site. With mesh = init_device_mesh(device, (sites, ranks), "
                "mesh_dim_names=('site', 'shard')) these are fully_shard(model, "
                "mesh=mesh['shard']) and group=mesh['site'].get_group()"
            )
        if any(placement.is_partial() for placement in parameter.placements):
            raise ValueError(f"parameter {name!r} is a partial sum: shard or replicate it")
        covered.update(ranks)
    if len(covered) > max((p.device_mesh.size() for _, p in sharded), default=0):
        raise ValueError(
            "no parameter's device mesh has all ranks over which the model is sharded, so that "
            "they cannot agree: use one mesh for the whole model, of several dimensions perhaps"
        )
