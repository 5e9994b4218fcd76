"""The simulator: hand-computed times, graphs against symmetry, thousands of nodes, the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hipress.base import units
from hipress.planning import cluster as sharing
from hipress.planning import profiles
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.planning.plan import Decision
from hipress.simulator import event_simulation, models
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate
from hipress.topology import topologies
from measured_profile import MEASURED

ROOT = Path(__file__).resolve().parents[3]
NONE = Codec("none", 4.0)
CODEC = Codec("codec", 0.25, 0, Curve(1e-9, 1e-5, 0), Curve(5e-10, 1e-5, 0), Curve(2e-10, 1e-5, 0))
CLUSTER = Cluster(bandwidth=1e9, latency=1e-3, message=0.0, task=0.0, threads=1)
SHARING = replace(CLUSTER, message=1e-2, part=1e-4)


def model(*layers: tuple[str, int, float]) -> Model:
    """Return layers of (name, size, seconds of the backward pass); the forward pass takes half of
    it."""
    backward = tuple(seconds for _, _, seconds in layers)
    forward = tuple(seconds / 2 for seconds in backward)
    return Model(
        "test", "", 1, tuple(Layer(name, size) for name, size, _ in layers), forward, backward
    )


def test_two_senders_to_one_receiver_wait_for_each_other():
    tasks = event_simulation.Tasks()
    for sender in (0, 1):
        send = tasks.send(sender, 1e6, 0)
        tasks.join(send, tasks.recv(2, 0))
    result = event_simulation.Run(tasks, CLUSTER, 3)
    # 1 ms on the wire each: the first arrives after 1 + 1 ms, the second 1 ms later.
    assert sorted(result.end)[-2:] == pytest.approx([2e-3, 3e-3])
    assert result.bytes == 2e6


def test_a_shaped_link_lets_a_burst_pass_after_a_pause():
    tasks = event_simulation.Tasks()
    shaped = replace(CLUSTER, burst=1e6)
    endings = []
    for at in (0.0, 0.0, 1.0):  # 2 MB each: the first and the last find a full bucket
        send = tasks.send(0, 2e6, len(endings))
        tasks.start(at, send)
        endings.append(tasks.recv(1, 0))
        tasks.join(send, endings[-1])
    result = event_simulation.Run(tasks, shaped, 2)
    assert [result.end[t] for t in endings] == pytest.approx([2e-3, 4e-3, 1.002])


def constants(path: str) -> dict[str, int]:
    """Return constants of a C++ header: ``NAME = 4 << 10`` and ``sizeof(NAME) == 40``."""
    text = (ROOT / path).read_text()
    found = re.findall(r"constexpr \w+ (k\w+) = (\d+) << (\d+);", text)
    sizes = re.findall(r"static_assert\(sizeof\((\w+)\) == (\d+)", text)
    return {name: int(a) << int(b) for name, a, b in found} | {n: int(size) for n, size in sizes}


def test_the_limits_are_those_of_the_executor():
    fused = constants("src/kvstore/fused.h")
    assert fused["kMaxFusedPayloadBytes"] == sharing.SHARED_PAYLOAD
    assert fused["kMaxFusedMessageBytes"] == sharing.SHARED_BYTES
    wire = constants("src/transport/message.h")
    assert wire["FusedPart"] == sharing.PART_HEADER
    assert wire["MessageHeader"] == sharing.HEADER
    assert constants("src/graph/executor.h")["kJobElements"] == sharing.JOB_ELEMENTS


def sent(cluster: Cluster, *sends: tuple[float, float, str]) -> event_simulation.Run:
    """Let host 0 send payloads to host 1: (bytes, ready at, peer) of each."""
    tasks = event_simulation.Tasks()
    for payload, at, peer in sends:
        send = tasks.send(0, 64 + payload, 0, peer=peer)
        tasks.start(at, send)
        tasks.join(send, tasks.recv(1, 0))
    return event_simulation.Run(tasks, cluster, 2)


def test_small_payloads_for_one_peer_that_are_ready_together_are_one_message():
    both = sent(SHARING, (1000, 0.0, "a"), (1001, 0.0, "a"))
    assert (both.messages, both.bytes) == (1, 64 + 40 + 1000 + 40 + 1008)
    # One message's time, the latency, and what the second part takes of the receiver's thread.
    assert max(both.end) == pytest.approx(both.bytes / 1e9 + 1e-2 + 1e-3 + 1e-4)
    assert both.compute_busy == pytest.approx([0.0, 1e-4])
    for two in (
        sent(replace(SHARING, part=None), (1000, 0.0, "a"), (1000, 0.0, "a")),
        sent(SHARING, (1000, 0.0, "a"), (1000, 1e-6, "a")),
        sent(SHARING, (1000, 0.0, "a"), (1000, 0.0, "b")),
        sent(SHARING, (5000, 0.0, "a"), (5000, 0.0, "a")),
    ):
        assert two.messages == 2
        assert max(two.end) == pytest.approx(two.bytes / 1e9 + 2e-2 + 1e-3)


def test_a_shared_message_has_at_most_32_kib():
    parts = sharing.SHARED_BYTES // (sharing.PART_HEADER + 4096)
    full = sent(SHARING, *[(4096, 0.0, "a")] * parts)
    assert (full.messages, full.bytes) == (1, 64 + parts * (40 + 4096))
    more = sent(SHARING, *[(4096, 0.0, "a")] * (parts + 1))
    # The last one goes alone, as it would without the other messages.
    assert (more.messages, more.bytes) == (2, full.bytes + 64 + 4096)


@pytest.mark.parametrize(("part", "endings"), [(None, [1.5, 3.0, 4.5]), (0.0, [2.5, 2.5, 4.0])])
def test_small_tasks_that_wait_are_one_job(part, endings):
    tasks = event_simulation.Tasks()
    elements = sharing.JOB_ELEMENTS // 2
    found = [tasks.compute(0, 1.0, i, elements=elements) for i in range(3)]
    result = event_simulation.Run(tasks, replace(CLUSTER, task=0.5, part=part), 1)
    assert [result.end[t] for t in found] == endings


@pytest.mark.parametrize("topology", ["ps", "colocated", "ring", "tree"])
def test_many_small_gradients_travel_in_few_messages(topology):
    net = model(*((f"g{i}", 100, 0.0) for i in range(60)))
    costs = Costs(NONE, CODEC)
    options = Options(topology, 4, symmetric=False)
    alone = simulate(net, costs, replace(SHARING, part=None), options)
    shared = simulate(net, costs, SHARING, options)
    assert shared.result.messages < alone.result.messages / 4
    assert shared.seconds < alone.seconds / 2


def test_the_urgent_task_goes_first_and_a_free_thread_takes_it_at_once():
    tasks = event_simulation.Tasks()
    first = tasks.compute(0, 1.0, 5)
    late = tasks.compute(0, 1.0, 9)
    urgent = tasks.compute(0, 1.0, 0, (first,))
    result = event_simulation.Run(tasks, CLUSTER, 1)
    assert (result.end[first], result.end[urgent], result.end[late]) == (1.0, 2.0, 3.0)


def test_tasks_that_wait_for_each_other_are_an_error():
    tasks = event_simulation.Tasks()
    tasks.recv(0, 0)
    with pytest.raises(event_simulation.Deadlock, match="1 of 1 tasks can never start"):
        event_simulation.Run(tasks, CLUSTER, 1)


def test_a_ring_of_two_takes_what_one_computes_by_hand():
    """A ring of two takes the time computed by hand. With 1 M floats in two chunks every node sends
    2 MB twice, 2 ms on the wire and 1 ms latency."""
    step = simulate(
        model(("g", 1 << 20, 0.0)),
        Costs(NONE, NONE),
        CLUSTER,
        Options("ring", 2),
        {"g": Decision(False, 2)},
    )
    wire = (4 * (1 << 19) + 64) / 1e9
    assert step.seconds == pytest.approx(2 * (wire + 1e-3))
    assert step.bytes_per_host == 2 * (4 * (1 << 19) + 64)


@pytest.mark.parametrize("topology", list(topologies.TOPOLOGIES))
@pytest.mark.parametrize("nodes", [1, 2, 3, 8])
def test_every_topology_runs_and_moves_the_bytes_its_graph_says(topology, nodes):
    net = model(("a", 300_000, 0.01), ("b", 5_000_000, 0.02))
    step = simulate(net, Costs(NONE, CODEC), CLUSTER, Options(topology, nodes))
    assert step.seconds >= step.compute == pytest.approx(0.045)
    if topology != "ps":
        sends = [
            task
            for layer in net.layers
            for program in topologies.build(topology, layer.size, nodes).tasks.values()
            for task in program
            if task.op.name == "SEND"
        ]
        if topology != "hierarchical":
            assert step.result.messages == len(sends)


@pytest.mark.parametrize("topology", ["ring", "colocated"])
@pytest.mark.parametrize("nodes", [2, 4, 8])
@pytest.mark.parametrize("codec", [NONE, CODEC], ids=["none", "codec"])
@pytest.mark.parametrize("cluster", [CLUSTER, replace(CLUSTER, part=1e-5)], ids=["apart", "shared"])
def test_one_host_for_all_takes_as_long_as_the_graph_of_all(topology, nodes, codec, cluster):
    sizes = {"a": nodes * 64 * 500, "b": nodes * 64 * 9000}
    net = model(("a", sizes["a"], 0.002), ("b", sizes["b"], 0.001))
    plan = {name: Decision(True, nodes * k) for name, k in (("a", 1), ("b", 2))}
    both = [
        simulate(
            net, Costs(NONE, codec), cluster, Options(topology, nodes, symmetric=symmetric), plan
        )
        for symmetric in (False, True)
    ]
    whole, one = both
    assert one.symmetric and not whole.symmetric
    assert one.bytes_per_host == pytest.approx(whole.bytes_per_host, rel=0.01)
    # Servers' inputs come one after the other in the one, in the other not quite.
    assert one.seconds == pytest.approx(whole.seconds, rel=0.02 if topology == "ring" else 0.2)


@pytest.mark.parametrize("topology", ["ring", "colocated"])
@pytest.mark.parametrize("nodes", [2, 4, 8])
@pytest.mark.parametrize("part", [None, 1e-6], ids=["apart", "shared"])
def test_small_gradients_cost_one_host_for_all_as_much_as_all(topology, nodes, part):
    # Each has one partition, somewhere; their messages' and codecs' starts are most of the time.
    net = model(*((f"g{i}", nodes * 200, 0.0) for i in range(64)))
    cluster = replace(CLUSTER, latency=5e-5, message=5e-6, task=5e-6, part=part)
    whole, one = (
        simulate(net, Costs(NONE, CODEC), cluster, Options(topology, nodes, symmetric=symmetric))
        for symmetric in (False, True)
    )
    assert one.seconds == pytest.approx(whole.seconds, rel=0.02 if topology == "ring" else 0.2)
    assert one.messages_per_host == whole.messages_per_host
    assert one.bytes_per_host == pytest.approx(whole.bytes_per_host, rel=0.01)
    busy, expected = (step.compute_use * step.seconds for step in (one, whole))
    assert busy == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("topology", ["ring", "colocated"])
@pytest.mark.parametrize(("nodes", "threads"), [(2, 2), (4, 2), (8, 2), (4, 6), (2, 8)])
def test_one_host_has_its_share_of_a_machine_that_all_share(topology, nodes, threads):
    net = model(*((f"g{i}", 1 << 22, 0.0) for i in range(4)))
    cluster = replace(CLUSTER, bandwidth=1e10, threads=threads, handling=2e-5, shared_hosts=True)
    whole, one = (
        simulate(net, Costs(NONE, CODEC), cluster, Options(topology, nodes, symmetric=symmetric))
        for symmetric in (False, True)
    )
    assert one.seconds == pytest.approx(whole.seconds, rel=0.2)
    assert one.compute_use == pytest.approx(whole.compute_use, rel=0.2)


@pytest.mark.parametrize(
    "cluster",
    [CLUSTER, replace(CLUSTER, handling=1e-4, shared_hosts=True)],
    ids=["apart", "one machine"],
)
def test_coarse_steps_take_as_long_as_fine_ones(cluster):
    from hipress.simulator import lower

    keys = [(lower.SimulatedKey(f"g{i}", CODEC, 0.001 * i, i), 1 << 20, 1) for i in range(6)]
    for form in lower.FORMS.values():
        endings = []
        for limit in (10**9, 2000):
            lowered = lower.one_for_all(form, keys, 128, cluster, limit)
            endings.append(max(event_simulation.Run(lowered.tasks, cluster, 1).end))
        assert endings[1] == pytest.approx(endings[0], rel=0.1)


@pytest.mark.slow
def test_4096_nodes_take_less_than_a_minute():
    net = models.load("resnet50")
    published = profiles.load("sosp21")
    cluster = replace(published.cluster(), devices=8, part=1e-6)
    began = time.monotonic()
    step = simulate(net, published.costs(), cluster, Options("ring", 4096))
    assert time.monotonic() - began < 60
    assert step.symmetric
    # In a ring the latency of 2(N-1) steps is a floor.
    assert step.seconds > 2 * 4095 * cluster.latency


def test_overlap_and_priority_hide_communication():
    net = model(*((f"g{i}", 1 << 20, 0.01) for i in range(8)))
    costs = Costs(NONE, CODEC)

    def exposed(**options: object) -> float:
        return simulate(net, costs, CLUSTER, Options("colocated", 4, **options)).exposed

    off = exposed(overlap=False, priority=False)
    assert exposed() < off / 2
    assert exposed(overlap_forward=True) <= exposed() + 1e-9


# The totals of the published table of models, in MiB, and its numbers of gradients.
PUBLISHED = {
    "vgg19": (548.05, 38),
    "bert-base": (420.02, 206),
    "bert-large": (1282.60, 398),
    "lstm": (327.97, 10),
    "transformer": (234.09, 185),
    "ugatit": (2558.75, 148),
    "resnet50": (97.49, 161),
}


@pytest.mark.parametrize("name", models.names())
def test_models_have_the_published_sizes(name):
    net = models.load(name)
    megabytes, gradients = PUBLISHED[name]
    assert 4 * net.elements / 2**20 == pytest.approx(megabytes, abs=0.01)
    assert len(net.layers) == gradients
    assert len({layer.name for layer in net.layers}) == gradients
    assert sum(net.backward) == pytest.approx(2 * sum(net.forward)) and sum(net.forward) > 0


def test_a_model_can_be_a_file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("# name,size,forward,backward\na,100,1,2\nb,200,3.5,4\n")
    net = models.load(str(path))
    assert (net.elements, net.forward, net.backward) == (300, (1e-3, 3.5e-3), (2e-3, 4e-3))
    path.write_text("a,100\nb,-2\n")
    with pytest.raises(ValueError, match="line 2: expected name,size"):
        models.load(str(path))
    with pytest.raises(ValueError, match="one of vgg19, resnet50"):
        models.load("vgg20")


@pytest.mark.parametrize("times", ["nan,1", "1,inf", "-1,1"])
def test_times_of_a_model_are_numbers(tmp_path, times):
    path = tmp_path / "net.txt"
    path.write_text(f"a,10,{times}\n")
    with pytest.raises(ValueError, match="line 1: expected name,size"):
        models.load(str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("other,20,y,2", "the plan has 'other', which is no gradient of this model; there are a"),
        ("a,30,y,2", "the plan is of another model: 'a' has 30 elements there, and 20 here"),
    ],
)
def test_a_plan_of_another_model_is_refused(tmp_path, line, message):
    net, plan = tmp_path / "net.txt", tmp_path / "SeCoPaPlan.txt"
    net.write_text("a,20\n")
    plan.write_text(f"{line}\n")
    done = hipress("simulate", "--model", str(net), "--nodes", "2", "--plan", str(plan))
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.parametrize("shared", [False, True])
def test_processors_that_all_hosts_share_are_told(tmp_path, shared):
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps(MEASURED | {"threads": 3, "shared_host": shared}))
    common = ["--profile", str(profile), "--model", "lstm", "--topology", "ring"]
    told = "shared one machine's processors, and so do"
    done = hipress("simulate", *common, "--nodes", "4")
    assert done.returncode == 0, done.stderr
    assert (f"{told} these: 3 for all together;" in done.stdout) == shared
    done = hipress("plan", *common, "--nnodes", "4", "--output", str(tmp_path / "plan.txt"))
    assert done.returncode == 0, done.stderr
    assert (f"{told} the plan's: 3 for all together;" in done.stdout) == shared


def test_units():
    assert units.rate("10gbit") == 1.25e9
    assert units.seconds("50us") == pytest.approx(5e-5)
    with pytest.raises(ValueError, match="a rate is a number and one of bit"):
        units.rate("fast")


def hipress(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hipress", *arguments],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command_predicts_and_writes_a_timeline(tmp_path):
    path = tmp_path / "t.json"
    common = ["simulate", "--model", "lstm", "--nodes", "4", "--topology", "ring"]
    done = hipress(*common, "--plan", "auto", "--timeline", str(path), "--json")
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["step_seconds"] < values["uncompressed_step_seconds"]
    assert 0 < values["scaling_efficiency"] <= 1
    events = json.loads(path.read_text())["traceEvents"]
    assert {"encode", "decode", "merge", "send", "receive"} <= {e["name"] for e in events}
    assert max(e["ts"] + e["dur"] for e in events if e["ph"] == "X") > 0
    faster = json.loads(hipress(*common, "--json", "--bandwidth", "400gbit").stdout)
    assert faster["step_seconds"] < values["uncompressed_step_seconds"]
    bad = hipress(*common[:-1], "mesh")
    assert bad.returncode == 1 and "there is no topology 'mesh'" in bad.stderr
    many = hipress("simulate", "--model", "vgg19", "--nodes", "4096", "--topology", "tree")
    assert many.returncode == 1 and "too many for the whole graph" in many.stderr


@pytest.mark.parametrize(("shared", "expected"), [(False, 1e-9), (True, 4.0)])
def test_nodes_of_one_machine_share_processors_for_messages_too(shared, expected):
    # Four hosts send to the next, each on a two link; the machine has one processor.
    tasks = event_simulation.Tasks()
    for host in range(4):
        send = tasks.send(host, 1.0, 0)
        tasks.join(send, tasks.recv((host + 1) % 4, 0))
    cluster = replace(CLUSTER, bandwidth=1e9, latency=0.0, handling=1.0, shared_hosts=shared)
    endings = event_simulation.Run(tasks, cluster, 4).end
    assert max(endings) == pytest.approx(expected, rel=1e-6)
