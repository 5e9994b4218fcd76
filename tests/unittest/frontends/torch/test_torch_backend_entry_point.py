"""The backend "hipress" by its entry point, and together with NCCL in one process group."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint

import pytest

from harness import ROOT
from harness.torch_ranks import run_ranks, torch

GROUP = "torch.distributed.backends"
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


def entry_points():
    """Return the backends that pyproject.toml declares, by name."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["entry-points"][GROUP]


def test_entry_point_registers_backend():
    (registrar,) = (EntryPoint(*each, GROUP).load() for each in entry_points().items())
    registrar()
    registrar()  # hipress.torch may have been imported before
    assert torch.distributed.is_backend_available("hipress")


def all_reduces(rank, name, installed):
    """Return a sum, the group's name and its counted bytes, without an import of hipress.torch."""
    import torch.distributed as dist

    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="lossless")
    if installed:
        sys.path.append(installed)
        assert "hipress.torch" not in sys.modules
    else:
        import hipress.torch  # noqa: F401
    dist.init_process_group(name)
    tensor = torch.full((100,), 1.0 + rank)
    dist.all_reduce(tensor)
    stats = dist.group.WORLD.stats()
    return float(tensor[0]), dist.get_backend_config(), stats.compressed, stats.uncompressed


def succeed(name, installed, config):
    found = run_ranks(all_reduces, 2, name, installed, join=False)
    assert found == [(3.0, config, 400, 0)] * 2


@pytest.mark.skipif(VERSION < (2, 14), reason="PyTorch 2.14 is the first with entry points")
@pytest.mark.parametrize("name", ["hipress", "cpu:hipress,cuda:nccl"])
def test_backend_needs_no_import(tmp_path, name):
    # What an installer writes for a package.
    package = tmp_path / "hipress-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: hipress\nVersion: 0\n")
    lines = [f"{key} = {value}" for key, value in entry_points().items()]
    (package / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]))
    config = name if ":" in name else "cpu:hipress,cuda:hipress"
    succeed(name, str(tmp_path), config)


def test_backend_is_combined_with_nccl():
    succeed("cpu:hipress,cuda:nccl", None, "cpu:hipress,cuda:nccl")


def test_backend_refuses_to_be_combined_with_others():
    for text in run_ranks(all_reduces, 2, "cpu:hipress,cuda:mpi", None, join=False):
        assert "'hipress' cannot be combined with backend 'mpi'" in text


class ImitatedNccl:
    """Constructor of NCCL's backend that returns one of Gloo, as there is no GPU."""

    class Options:
        _timeout = None

    made = []

    def __new__(cls, store, rank, size, options):
        cls.made.append(torch.distributed.ProcessGroupGloo(store, rank, size, options._timeout))
        return cls.made[-1]


def imitated(rank):
    """Return whether NCCL's backend is the group's backend on GPUs only."""
    import torch.distributed as dist

    torch.cuda.is_available = lambda: True
    dist.ProcessGroupNCCL = ImitatedNccl
    all_reduces(rank, "cpu:hipress,cuda:nccl", None)
    group, (nccl,) = dist.group.WORLD, ImitatedNccl.made
    return [group._get_backend(torch.device(device)) is nccl for device in ("cpu", "cuda")]


def test_nccl_is_the_backend_on_gpus():
    assert run_ranks(imitated, 2, join=False) == [[False, True]] * 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_tensors_travel_over_nccl():
    assert run_ranks(over_nccl, 1, join=False, gpu=True) == [(True, 4.0, 2.0)]


def over_nccl(rank):
    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="0")
    dist.init_process_group("cpu:hipress,cuda:nccl")
    mean = torch.full((5,), 4.0, device="cuda")
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    gathered = torch.zeros(5, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.full((5,), 2.0, device="cuda"))
    dist.barrier()
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    return isinstance(backend, dist.ProcessGroupNCCL), float(mean[0]), float(gathered[0])
