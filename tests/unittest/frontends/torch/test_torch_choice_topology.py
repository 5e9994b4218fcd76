"""Type "auto" where ranks share hosts: it also chooses the topology."""

from __future__ import annotations

import os
import sys

import pytest

from harness import netns
from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from known_times import logged
from test_torch_choice import SCRIPT
from test_torch_ddp import loss_of, network
from torch_states import flat_state


def on_shared_hosts(rank, seconds, count=2, state=None, fastest="maxmin bits=5", **options):
    """Train with type "auto" where so many ranks share each host, and gradients take so many ms
    with each topology.

    Args:
        state: State of the previous compression, by rank.
        fastest: The fastest method; with error feedback it trains with SGD.
    """
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.autotune import choice as hosts
    from hipress.torch.autotune import frontend

    hosts.this_host = lambda: f"host {rank // count}"
    lines, work = logged(), frontend.Sample.seconds
    topology = {}

    def seconds_of(step):
        work(step)
        topology[step.method.name] = step.settings.topology
        if step.method.topology:
            return seconds[step.method.topology] / 1e3
        return 0.001 if step.method.name == fastest else 0.002

    frontend.Sample.seconds = seconds_of
    ddp = DistributedDataParallel(network())
    if "ef" in fastest:
        options["optimizer"] = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0.9)
    compression = hipress.torch.compress(ddp, min_size=1000, **options)
    if state:
        compression.load_state_dict(state[rank])
    for step in range(2):
        loss_of(ddp, rank, step).backward()
    settings = compression.settings
    gradients = b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())
    return (
        settings.topology,
        settings.devices_per_host,
        settings.type,
        gradients,
        lines,
        compression.explain(),
        topology,
        compression.state_dict(),
    )


def on_hosts(*args, ranks=4, **options):
    found = returned(run_ranks(with_hosts, ranks, args, options))
    assert all(each[:4] == found[0][:4] and each[5:7] == found[0][5:7] for each in found)
    return (*found[0][:7], [each[7] for each in found])


def with_hosts(rank, args, options):
    return on_shared_hosts(rank, *args, **options)


@pytest.mark.slow
def test_hosts_with_several_ranks_may_add_up_inside_first():
    topology, count, type, _, lines, explained, tried, _ = on_hosts({"ps": 20, "hierarchical": 10})
    assert (topology, count, type) == ("hierarchical", 2, "maxmin")
    said = "auto: topology hierarchical, for hosts have 2 ranks each: a step's gradients take "
    assert lines[0] == said + "10 ms by maxmin bits=8 (ps 20 ms)"
    assert explained.history == lines[:1] and explained.sentence == lines[1]
    assert set(tried.values()) == {"hierarchical"}  # with which all methods were measured then
    # Three ranks, of which the last one has a separate host.
    found = on_hosts({"ps": 20, "hierarchical": 10}, ranks=3)
    assert found[:2] == ("hierarchical", 2)


@pytest.mark.slow
def test_where_that_is_slower_or_another_topology_was_asked_for():
    topology, count, *_, lines, explained, tried, _ = on_hosts({"ps": 10, "hierarchical": 20})
    assert (topology, count, set(tried.values())) == ("colocated", 1, {"colocated"})
    assert "auto: topology ps, for hosts have 2 ranks each" in lines[0]
    for options in ({"topology": "ps"}, {"topology": "ring"}, {"count": 1}, {"count": 4}):
        topology, count, *_, lines, explained, tried, _ = on_hosts({}, **options)
        wanted = "ring" if options.get("topology") == "ring" else "colocated"
        assert (topology, count, set(tried.values())) == (wanted, 1, {wanted})
        assert len(lines) == 1 and not explained.history


@pytest.mark.slow
def test_a_restarted_job_may_choose_another_topology():
    """A restarted job may choose another topology: a rank's own state is enough, as it applies to
    the next gradients of any method."""
    for seconds in ({"ps": 20, "hierarchical": 10}, {"ps": 10, "hierarchical": 20}):
        first, *_, states = on_hosts(seconds, fastest="maxminef bits=2")
        assert any(key.endswith("/residual") for key in flat_state(states[0]))
        other = dict(zip(seconds, reversed(seconds.values())))
        second, *_, after = on_hosts(other, state=states, fastest="maxminef bits=2")
        assert {first, second} == {"hierarchical", "colocated"}
        assert [flat_state(state)[f"rank{rank}/step"] for rank, state in enumerate(after)] == [
            4
        ] * 4


def named(rank, options, method):
    """Train with a named type, where two ranks share each host and "hierarchical" is faster."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import threshold
    from hipress.torch.autotune import choice as hosts
    from hipress.torch.autotune import frontend

    hosts.this_host = lambda: f"host {rank // 2}"
    lines, work = logged(), frontend.Sample.seconds

    def seconds_of(step):
        if step.method is None:  # with plan="auto"
            return 1 if step.settings.min_size < threshold.NEVER else 2
        work(step)
        return 0.01 if step.settings.topology == "hierarchical" else 0.02

    frontend.Sample.seconds = seconds_of
    frontend.GroupFrontend.time_size = lambda of, size, compressed: size * (1 if compressed else 2)
    model = network()
    if method == "compress":
        ddp = DistributedDataParallel(model)
        compression = hipress.torch.compress(ddp, min_size=1000, **options)
        loss_of(ddp, rank, 0).backward()
    else:
        sgd = torch.optim.SGD(model.parameters(), 0.1)
        optimizer = hipress.torch.DistributedOptimizer(
            sgd, model.named_parameters(), options.pop("type"), min_size=1000, **options
        )
        compression = optimizer.compression
        loss_of(model, rank, 0).backward()
        optimizer.synchronize()
    found = b"".join(p.grad.numpy().tobytes() for p in model.parameters())
    return compression.settings.topology, compression.settings.devices_per_host, found, lines


@pytest.mark.slow
@pytest.mark.parametrize("method", ["compress", "DistributedOptimizer"])
@pytest.mark.parametrize(
    ("options", "topology"),
    [
        ({"type": "onebit", "topology": "auto"}, "hierarchical"),
        ({"type": "dgc", "topology": "auto", "warmup_steps": 3, "momentum": 0}, "hierarchical"),
        ({"type": "powersgd", "topology": "auto"}, "hierarchical"),
        ({"type": "onebit", "topology": "auto", "plan": "auto"}, "hierarchical"),
        ({"type": "dgc", "topology": "auto"}, "colocated"),  # its momentum is for each gradient
        ({"type": "onebit"}, "colocated"),
    ],
)
def test_a_named_type_may_leave_the_topology_to_the_ranks(options, topology, method):
    if method == "DistributedOptimizer" and "momentum" in options:
        type = {"type": options["type"], "momentum": options["momentum"]}
        options = {**options, "type": type}
        del options["momentum"]
    found = returned(run_ranks(named, 4, options, method))
    assert all(each[:3] == found[0][:3] for each in found)
    count = 2 if topology == "hierarchical" else 1
    assert found[0][:2] == (topology, count)
    said = [line for line in found[0][3] if line.startswith("auto: topology")]
    assert len(said) == count - 1 and not any(each[3] for each in found[1:])


def elsewhere(rank):
    """Front ends that do not let the ranks choose a topology report that."""
    import hipress.torch

    model = network()
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match=r"topology 'auto' is for compress\(\) and Distributed"):
        hipress.torch.DiLoCo(model, sgd, sgd, 2, compression="onebit", topology="auto")
    return True


def test_topology_auto_is_refused_where_nobody_measures_it():
    assert returned(run_ranks(elsewhere, 2)) == [True, True]


def test_a_host_without_proc_is_this_processs_own(monkeypatch):
    from hipress.torch.autotune import choice as hosts

    def missing(path, *args):
        raise FileNotFoundError(path)

    monkeypatch.setattr(hosts.os, "stat", missing)
    assert hosts.this_host() == hosts.this_host() and str(os.getpid()) in hosts.this_host()


def test_ranks_of_a_host_lie_together():
    from hipress.torch.autotune.choice import block_length

    for hosts, length in (
        ("aabb", 2),
        ("aab", 2),
        ("aaabbb", 3),
        ("ab", 1),
        ("aa", 1),
        ("a", 1),
        ("abab", 1),
        ("aabbb", 1),
        ("abb", 1),
        ("aabbaa", 1),
    ):
        assert block_length(hosts) == length, hosts


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_slow_links_between_hosts_of_two_ranks_they_add_up_inside_first():
    """Type auto sums inside each host first where links between hosts are slow.

    Cost: All methods and topologies are measured over links of 50 Mbit/s.
    """
    with (
        netns.ShapedNetwork(2, rate="50mbit", burst="32kb", verify=False) as network,
        TorchJob([sys.executable, str(SCRIPT)], 4, base_environment(), network=network) as job,
    ):
        outputs = [result.output for result in job.wait(110, succeed=True)]
    for output in outputs:
        for said in ("equal True", "type maxmin", "> maxmin bits=", "auto: topology hierarchical"):
            assert output.count(said) >= 2, output
