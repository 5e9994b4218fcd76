"""A topology is one object: registered by its name, every part of the system takes it by that name.

``end`` is registered as Python starts, in every process of a job; no other file knows of it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT
from harness.launch import run
from harness.processes import base_environment
from hipress.topology import topologies
from hipress.topology.graph import GRADIENT, PLAIN, Op, Role
from scripts import SCRIPTS

NEW = SCRIPTS / "new_topology" / "sitecustomize.py"

JOB = SCRIPTS / "new_topology" / "job.py"


@pytest.fixture
def environment(tmp_path):
    """Return variables with which every new Python process registers the new topology."""
    shutil.copy(NEW, tmp_path / "sitecustomize.py")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "python")])
    return base_environment({"PYTHONPATH": path})


def hipress(environment, line: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "hipress", *line.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_job_runs_it(environment):
    command = [sys.executable, str(JOB)]
    launch = run(["-n", "3", "--topo", "END", *command], env=environment)
    assert launch.process.returncode == 0, launch.out + launch.err
    assert sorted(launch.out.splitlines()) == [f"[worker {rank}] equal" for rank in range(3)]


@pytest.mark.slow
def test_pytorch_takes_it(environment):
    pytest.importorskip("torch")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node=3",
            "--standalone",
            str(SCRIPTS / "new_topology" / "torch_ddp.py"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split()) == ["0", "1", "2", "trained", "trained", "trained"]


def test_it_is_simulated_and_planned_for(environment, tmp_path):
    found = {}
    for topology in ("end", "star"):
        line = f"simulate --model resnet50 --nodes 4 --topology {topology} --json"
        done = hipress(environment, line)
        assert done.returncode == 0, done.stderr
        found[topology] = json.loads(done.stdout)
    for key in ("step_seconds", "bytes_sent_per_host", "messages_per_host"):
        assert found["end"][key] == pytest.approx(found["star"][key], rel=0.01)
    plan = tmp_path / "plan"
    line = f"plan --model resnet50 --topology END --nnodes 4 --output {plan}"
    done = hipress(environment, line)
    assert done.returncode == 0, done.stderr
    assert len(plan.read_text().splitlines()) == found["end"]["gradients"]


def test_every_command_names_it(environment, tmp_path):
    launcher = [sys.executable, str(ROOT / "tools/launch.py"), "--help"]
    for command in ("simulate", "plan", "bench allreduce"):
        page = hipress(environment, f"{command} --help").stdout.lower()
        assert "or end" in " ".join(page.split()), page
    page = subprocess.run(launcher, env=environment, capture_output=True, text=True).stdout
    assert "hierarchical, end" in " ".join(page.split())
    done = hipress(environment, "simulate --model vgg19 --nodes 4 --topology rng")
    assert "hierarchical, end" in done.stderr
    done = hipress(environment, "plan --model vgg19 --nnodes 4 --topology star")
    assert "must be PS, COLOCATED, RING, TREE or END, not 'star'" in done.stderr


def test_an_unknown_name_is_one_sentence_that_lists_all():
    """An unknown name gives one message that lists all names. This test covers calls before a job
    exists; stores and commands have separate tests."""
    from hipress import CompressionConfig

    sentence = f"there is no topology 'mesh'; there are {', '.join(topologies.names())}"
    with pytest.raises(ValueError, match=sentence):
        CompressionConfig.of({"type": "onebit", "topology": "mesh"})
    assert CompressionConfig.of({"type": "onebit", "topology": "Auto"}).topology == "auto"
    assert CompressionConfig.of({"type": "onebit", "topology": "Ring"}).topology == "ring"
    pytest.importorskip("torch")
    from hipress.torch.settings import Settings

    with pytest.raises(ValueError, match=sentence):
        Settings("onebit", topology="mesh")
    assert Settings("onebit", topology="PS").topology == "colocated"


@pytest.mark.parametrize("name", ["ring", "auto", "Mine", "my own", ""])
def test_a_name_that_cannot_be_is_refused(name):
    topology = topologies.Topology(name, "", lambda graph, request: None)
    with pytest.raises(ValueError, match=f"needs a name of its own in small letters, not '{name}'"):
        topologies.register(topology)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", topologies.names())
def test_what_a_topology_says_of_itself_is_what_its_graphs_do(name, devices):
    topology = topologies.TOPOLOGIES[name]
    assert topology.name == name and topology.summary
    graph = topologies.build(name, 64 * 12, 4, 2, partitions=12, devices_per_host=devices)
    roles = {node.role for node in graph.tasks}
    assert topology.needs_servers == (Role.SERVER in roles)
    takers = [
        task
        for node, tasks in graph.tasks.items()
        for task in tasks
        if node.role == Role.WORKER and GRADIENT in task.inputs
    ]
    alone = all(task.op == Op.ENCODE and task.num_summands != PLAIN for task in takers)
    assert topology.encodes_each_of(devices) == alone
    other = topologies.build(name, 64 * 12, 4, 2, partitions=12, devices_per_host=3)
    assert topology.needs_devices_per_host == (other.tasks != graph.tasks)
    if topology.among_workers:
        assert not topologies.TOPOLOGIES[topology.among_workers].needs_servers


def test_graphs_import_nothing_that_is_built_on_them():
    for path in sorted((ROOT / "python/hipress/topology").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                below = module.startswith("hipress.topology") or not module.startswith("hipress")
                assert below, f"{path.name} imports {module}"


@pytest.mark.parametrize(
    "page", ["docs/guides/many-machines.md", "docs/concepts/casync.md", "docs/reference/torch.md"]
)
def test_the_pages_that_list_topologies_list_all(page):
    text = Path(ROOT / page).read_text(encoding="utf-8")
    inside = topologies.TOPOLOGIES["ps"].among_workers if "torch" in page else None
    missing = [name for name in topologies.names() if f"`{name}`" not in text and name != inside]
    assert not missing
