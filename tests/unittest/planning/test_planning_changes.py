"""Command-line changes of a profile's hosts and links, which also apply to plans."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import Result
from typer.testing import CliRunner

from hipress.cli.main import build_app
from hipress.planning import profiles
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate
from measured_profile import MEASURED

NOTHING = {"w": 0.0, "b": 0.0, "o": 0.0}
FAST_LINK = {"w": 1e-13, "b": 0.0, "o": 1e-6}
PLAIN = {"bytes_per_element": 4.0, "fixed_bytes": 0.0} | dict.fromkeys(
    ["encode", "decode", "merge", "add"], NOTHING
)
SMALL = PLAIN | {"bytes_per_element": 0.125, "encode": {"w": 5e-9, "b": 0.0, "o": 0.0}}


@pytest.fixture
def profile(tmp_path):
    """Return a function that writes a profile of a fast network, and returns its file."""

    def write(**values: object) -> str:
        path = tmp_path / "profile.json"
        found = {
            "shared_host": False,
            "threads": 2,
            "network": {"send": FAST_LINK, "message": 1e-6},
            "codecs": {"none": PLAIN, "onebit": SMALL},
        }
        path.write_text(json.dumps(MEASURED | found | values))
        return str(path)

    return write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(arguments[0]), list(arguments))


def hipress(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def simulated(*arguments: str) -> dict:
    return json.loads(hipress("simulate", "--model", "vgg19", "--nodes", "4", "--json", *arguments))


@pytest.mark.slow
def test_a_plan_is_made_for_the_link_that_is_simulated(profile):
    options = ["--profile", profile(), "--compute-ms", "0"]
    uncompressed = simulated(*options, "--type", "none")["bytes_sent_per_host"]
    fast = simulated(*options, "--plan", "auto")
    assert fast["bytes_sent_per_host"] == pytest.approx(uncompressed, rel=0.01)
    slow = simulated(*options, "--bandwidth", "100mbit", "--plan", "auto")
    assert slow["bytes_sent_per_host"] < 0.1 * uncompressed


def test_the_plan_command_takes_another_link(profile, tmp_path):
    path = tmp_path / "plan.txt"
    common = ["plan", "--model", "vgg19", "--topology", "ring", "--nnodes", "4"]
    common += ["--profile", profile(), "--output", str(path)]
    assert " 0 of 38 gradients compressed" in hipress(*common)
    assert " 0 of 38 gradients compressed" not in hipress(*common, "--bandwidth", "100mbit")


def test_the_published_profile_plans_for_its_own_links_only():
    common = ["--model", "vgg19", "--topology", "ring", "--bandwidth", "1gbit"]
    for command in (["simulate", "--nodes", "4", "--plan", "auto"], ["plan", "--nnodes", "4"]):
        done = run(*command, *common)
        assert done.exit_code == 1
        assert "profile sosp21 plans for its own links and hosts only" in done.output


@pytest.mark.slow
def test_hosts_that_share_a_machine_say_so_and_need_not(profile):
    """`simulate` and `explain` say that hosts share a machine's processors, and that an option
    changes it.

    Cost: Six commands simulate vgg19 on four nodes.
    """
    options = ["--profile", profile(shared_host=True), "--bandwidth", "1gbit"]
    shared, separate = simulated(*options), simulated(*options, "--threads", "2")
    assert shared["shared_hosts"] and not separate["shared_hosts"]
    text = ["simulate", "--model", "vgg19", "--nodes", "4", *options]
    assert "shared one machine's processors" in hipress(*text)
    assert "one machine" not in hipress(*text, "--threads", "2")
    explain = ["explain", "--model", "vgg19", "--nodes", "4", *options]
    assert "all hosts share the processors" in hipress(*explain)
    assert "all hosts share" not in hipress(*explain, "--threads", "2")


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_node_takes_no_more_of_a_shared_machine_than_it_has_threads(symmetric):
    layers = tuple(Layer(f"g{i}", 1 << 22) for i in range(16))
    net = Model("m", "", 1, layers, (0.0,) * 16, (0.0,) * 16)
    slow = Codec("slow", 0.1, encode=Curve(1e-8, 0, 0))
    few = Cluster(1e12, latency=0.0, threads=64, task=0.0, shared_hosts=True, node_threads=4)

    def seconds(cluster: Cluster) -> float:
        how = Options("colocated", 2, symmetric=symmetric)
        return simulate(net, Costs(slow, slow), cluster, how).seconds

    all_of_them = seconds(replace(few, node_threads=None))
    assert seconds(few) > 4 * all_of_them
    as_many = replace(few, threads=8, node_threads=None)
    assert seconds(few) == pytest.approx(seconds(as_many), rel=0.1)


def test_profiles_without_a_nodes_threads_have_as_many_as_nodes_take_by_themselves(profile):
    loaded = profiles.load(profile(shared_host=True, threads=64))
    assert loaded.cluster().node_threads == 4
    assert profiles.load(profile(shared_host=True, node_threads=2)).cluster().node_threads == 2
    assert profiles.load(profile()).cluster().node_threads is None
