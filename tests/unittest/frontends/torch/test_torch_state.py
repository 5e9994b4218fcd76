"""Residuals, momentum and step after a job: exact in one like it, summed up in another."""

import functools
import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from scripts import SCRIPTS
from test_torch_ddp import bits, loss_of, network, succeed, wrap
from torch_states import flat_state

ROOT = Path(__file__).resolve().parents[4]


def train(ddp, rank, steps):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for step in steps:
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        optimizer.step()


def resume(rank, type, topology, params, folder):
    """Compare six steps with three, a checkpoint, and three in a new model: the same bits."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    import hipress.torch

    straight = network()
    train(wrap(straight, type, topology=topology, **params)[0], rank, range(6))

    first = network()
    ddp, compression = wrap(first, type, topology=topology, **params)
    train(ddp, rank, range(3))
    dcp.save({"model": first.state_dict(), "hipress": compression}, checkpoint_id=folder)

    second = network(seed=1)
    model_state = {"model": second.state_dict()}
    dcp.load(model_state, checkpoint_id=folder)
    second.load_state_dict(model_state["model"])
    ddp, compression = wrap(second, type, topology=topology, **params)
    name = "load" if "no_dist" in inspect.signature(dcp.load).parameters else "load_state_dict"
    read, load = set(), getattr(dcp, name)

    @functools.wraps(load)
    def spy(wanted, **keywords):
        read.update(wanted)
        load(wanted, **keywords)

    setattr(dcp, name, spy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turn in range(2):  # no rank waits for another
            if turn == rank:
                hipress.torch.load_checkpoint(compression, folder)
            dist.barrier()
    setattr(dcp, name, load)
    assert read and all(key == f"hipress.rank{rank}" for key in read)
    assert compression.step == 3
    train(ddp, rank, range(3, 6))
    assert bits(second) == bits(straight)
    return bits(second)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("type", "topology", "params"),
    [
        ("onebit", "ps", {}),
        ("dgc", "ring", {"ratio": 0.05}),
        ("maxmin", "ps", {}),
        ("onebit", "hierarchical", {"devices_per_host": 2}),
        ("onebit", "ring", {"shared_momentum": 0.9}),
    ],
)
def test_a_job_goes_on_with_the_same_bits(tmp_path, type, topology, params):
    succeed(run_ranks(resume, 2, type, topology, params, str(tmp_path)))


def gradient_of(rank, count=20_000):
    # In float64: the float32 sine of large numbers is not the same in every process.
    return torch.sin(torch.arange(count, dtype=torch.float64) * (0.37 + rank)).float()


class One(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(20_000))

    def forward(self, x):
        return (self.weight * x).sum()


def leave(rank, type, params, topology):
    """Make one step; return the state and the result."""
    model = One()
    ddp, compression = wrap(model, type, topology=topology, **params)
    ddp(gradient_of(rank)).backward()
    return compression.state_dict(), model.weight.grad.numpy()


def take_over(rank, states, type, params, topology, own=False):
    """Make steps of zero gradients, whose results are the other job's residuals.

    Args:
        own: Whether a rank gets its own state, otherwise those of all.
    """
    model = One()
    ddp, compression = wrap(model, type, topology=topology, **params)
    problem = ""
    if own:
        compression.load_state_dict(states[rank])
    else:
        try:
            compression.load_state_dict(states[1])
        except ValueError as error:
            problem = str(error)
        every = {key: value for state in states for key, value in state.items()}
        compression.load_state_dict(every)
    total = torch.zeros(20_000)
    for _ in range(40):
        model.weight.grad = None
        ddp(torch.zeros(20_000)).backward()
        total += model.weight.grad
    return total.numpy(), compression.step, problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world_size", "topology"), [(3, "ps"), (1, "ring"), (3, "ring"), (4, "hierarchical")]
)
def test_another_number_of_ranks_gets_what_was_left(world_size, topology):
    params = {"ratio": 0.1}
    left = run_ranks(leave, 2, "topk", params, "ps")
    assert not any(isinstance(found, str) for found in left), left
    mean = (gradient_of(0) + gradient_of(1)).numpy() / 2
    rest = mean - left[0][1]
    assert abs(rest).max() > 0.5
    if topology == "hierarchical":
        params = HOSTS_OF_TWO
    found = run_ranks(take_over, world_size, [state for state, _ in left], "topk", params, topology)
    assert not any(isinstance(one, str) for one in found), found
    for total, step, problem in found:
        torch.testing.assert_close(
            torch.from_numpy(total), torch.from_numpy(rest), rtol=0, atol=2e-6
        )
        assert step == 41
        assert "rank 0's is not there" in problem


HOSTS_OF_TWO = {"ratio": 0.1, "devices_per_host": 2}


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("ps", {"ratio": 0.1}), ("hierarchical", HOSTS_OF_TWO)),
        (("hierarchical", HOSTS_OF_TWO), ("ps", {"ratio": 0.1})),
        (("hierarchical", HOSTS_OF_TWO), ("ring", {"ratio": 0.2})),
    ],
)
def test_another_topology_needs_a_ranks_own_state_only(before, after, own):
    """Another topology needs only a rank's own state, as where ranks choose the topology, and
    choose another after a restart."""
    (topology, params), (other, others_params) = before, after
    left = returned(run_ranks(leave, 4, "topk", params, topology))
    rest = sum(gradient_of(rank) for rank in range(4)).numpy() / 4 - left[0][1]
    assert abs(rest).max() > 0.3
    states = [state for state, _ in left]
    for total, step, _ in returned(
        run_ranks(take_over, 4, states, "topk", others_params, other, own)
    ):
        torch.testing.assert_close(
            torch.from_numpy(total), torch.from_numpy(rest), rtol=0, atol=2e-6
        )
        assert step == 41


def load_and_save(rank, states, topology):
    """Load and save in a job that ends before its first step; return its state, and after one step
    its tasks' steps."""
    model = One()
    params = {"ratio": 0.1, "warmup": 50}
    ddp, compression = wrap(model, "dgc", topology=topology, **params)
    compression.load_state_dict({key: value for state in states for key, value in state.items()})
    saved = compression.state_dict()
    ddp(torch.zeros(20_000)).backward()
    return saved, [each.state_dict()["step"] for each in compression.error_feedback.states.values()]


def test_a_job_without_a_step_loses_nothing_and_a_warm_up_goes_on():
    left = [state for state, _ in run_ranks(leave, 2, "dgc", {"ratio": 0.1, "warmup": 50}, "ps")]
    again = run_ranks(load_and_save, 2, left, "ps")
    for before, (after, steps) in zip(left, again, strict=True):
        before, after = flat_state(before), flat_state(after)
        assert set(after) == set(before)
        for key, value in before.items():
            same = torch.equal(after[key], value) if "/states/" in key else after[key] == value
            assert same, key
        assert set(steps) == {2}
    moved = run_ranks(load_and_save, 3, left, "ps")
    moved_again = run_ranks(load_and_save, 2, [state for state, _ in moved], "ring")
    for rank, (state, steps) in enumerate(moved_again):
        assert set(steps) == {2}
        kept = {
            k: v
            for k, v in flat_state(moved[0][0]).items()
            if k.startswith("rank0/total/weight/states/")
        }
        assert len(kept) == 2  # the residual and the momentum
        for key, first in kept.items():
            assert first.abs().max() > 0
            assert torch.equal(flat_state(state)[key.replace("rank0", f"rank{rank}")], first)


class Two(torch.nn.Module):
    """Model in which the number of parameters before the large one decides which rank serves which
    half of it."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Parameter(torch.zeros(10))
        self.large = torch.nn.Parameter(torch.zeros(32_768))

    def forward(self, x):
        return (self.large * x).sum() + self.first.sum()


def freezes(rank, folder):
    """Freeze parameters, with the same number of ranks, but another order of tasks: all residuals
    come out."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    import hipress.torch

    model = Two()
    ddp, compression = wrap(model, "topk", ratio=0.1)
    ddp(gradient_of(rank, 32_768)).backward()
    given, alone = model.large.grad, compression.state_dict()
    dcp.save({"hipress": compression}, checkpoint_id=folder)

    model = Two()
    model.first.requires_grad_(False)
    ddp, compression = wrap(model, "topk", ratio=0.1)
    compression.load_state_dict(alone)
    hipress.torch.load_checkpoint(compression, folder)  # the same again
    total = torch.zeros(32_768)
    for _ in range(40):
        model.large.grad = None
        ddp(torch.zeros(32_768)).backward()
        total += model.large.grad
    rest = sum(gradient_of(r, 32_768) for r in range(dist.get_world_size())) / 2 - given
    assert rest.abs().max() > 0.5
    torch.testing.assert_close(total, rest, rtol=0, atol=2e-6)


def freezes_a_large_one(rank, folder):
    """Freeze a large parameter: its residual is dropped with a warning; all others are resharded
    once."""
    import logging

    import torch.distributed.checkpoint as dcp

    import hipress.torch

    ddp, compression = wrap(network(), "onebit")
    train(ddp, rank, range(1))
    dcp.save({"hipress": compression}, checkpoint_id=folder)
    model, said = network(), []
    model[2].weight.requires_grad_(False)
    ddp, compression = wrap(model, "onebit")
    logging.getLogger("hipress").addFilter(lambda record: said.append(record.getMessage()) or True)
    hipress.torch.load_checkpoint(compression, folder)
    assert "['2.weight'] is dropped" in said[0]
    assert set(compression.error_feedback.to_reshard) == {"0.weight", "4.weight"}
    train(ddp, rank, range(1, 2))
    assert not compression.error_feedback.to_reshard and compression.step == 2

    # Where it is trained but not compressed, it stays in the state.
    said.clear()
    ddp, compression = wrap(network(), "onebit", min_size=10_000)
    hipress.torch.load_checkpoint(compression, folder)
    train(ddp, rank, range(2))
    assert [text.partition(",")[0] for text in said] == [
        "the residual of ['4.weight'] waits in the state"
    ]
    assert any("/4.weight/" in key for key in flat_state(compression.state_dict()))


def test_what_was_left_of_a_frozen_parameter_is_dropped(tmp_path):
    succeed(run_ranks(freezes_a_large_one, 2, str(tmp_path)))


def test_a_frozen_parameter_mixes_nothing_up(tmp_path):
    succeed(run_ranks(freezes, 2, str(tmp_path)))


ELASTIC = SCRIPTS / "torch_elastic_restart.py"


def four_steps(rank):
    model = network()
    train(wrap(model, "onebit")[0], rank, range(4))
    return bits(model)


@pytest.mark.slow
def test_an_elastic_restart_goes_on(tmp_path):
    """A job that torchrun restarts continues from its checkpoint with the bits of an
    uninterrupted job.

    Cost: torchrun and two ranks import PyTorch, and the ranks start twice.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=1", "--monitor-interval=0.1"]
    command += [str(ELASTIC), str(tmp_path), "bits"]
    path = os.pathsep.join([str(ROOT / "python"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    # Otherwise Gloo finds the dead ranks' addresses in the store that torchrun keeps over restarts.
    env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    straight = succeed(run_ranks(four_steps, 2))[0]
    assert torch.load(tmp_path / "bits") == straight
