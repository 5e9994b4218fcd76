"""Jobs over IPv6: on the loopback address ::1, and between hosts that have no IPv4 address."""

import json
import shutil
import socket
import sys
from pathlib import Path

import pytest

from harness.cluster import run_cluster, worker_outputs
from harness.elastic import ElasticJob
from harness.launch import Sshd, run
from harness.marks import needs_namespaces
from harness.netns import ShapedNetwork
from harness.processes import base_environment
from harness.torch_job import TorchJob

SCRIPTS = Path(__file__).parents[1]
COLOCATED = {"HIPRESS_TOPOLOGY": "colocated"}


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback address")


def records(outputs):
    """Return the JSON line of each process."""
    lines = [[line for line in text.splitlines() if line.startswith("{")] for text in outputs]
    return [json.loads(line) for (line,) in lines]


@needs_ipv6
def test_store_on_ipv6_loopback_shares_memory():
    results = run_cluster(
        SCRIPTS / "ipv6_store.py", servers=0, env=COLOCATED, loopback="::1", timeout=60
    )
    for record in records(worker_outputs(results)):
        assert record["total"] == 3
        assert record["lent_bytes"] > 0


@pytest.mark.slow
@needs_ipv6
def test_torch_job_with_ipv6_master_address():
    pytest.importorskip("torch")
    command = [sys.executable, str(SCRIPTS / "ipv6_torch.py")]
    with TorchJob(command, 2, base_environment(), loopback="::1") as job:
        first, second = records([result.output for result in job.wait(90, succeed=True)])
    assert first["digest"] == second["digest"]
    assert first["pushed_bytes"] > 0


@pytest.mark.slow
@needs_ipv6
def test_elastic_job_on_ipv6_loopback():
    pytest.importorskip("torch")
    command = [sys.executable, str(SCRIPTS / "elastic_steps.py")]
    with ElasticJob(command, 2, loopback="::1") as job:
        job.wait(90, succeed=True)
        assert [event["epoch"] for event in job.journal(0) if event["event"] == "view"] == [1]


@pytest.mark.slow
@needs_ipv6
@pytest.mark.parametrize("written", ["::1", "[::1]"])
def test_launcher_starts_a_job_on_ipv6_loopback(written):
    line = ["-n", "2", "-s", "0", "--topo", "colocated", "--host-ip", written, "--hipress"]
    launch = run([*line, sys.executable, str(SCRIPTS / "ipv6_store.py")], seconds=90)
    assert launch.process.returncode == 0, launch.out + launch.err
    assert launch.out.count('"total": 3.0') == 2


@pytest.mark.slow
@needs_ipv6
def test_launcher_reaches_ipv6_hosts_over_ssh(tmp_path):
    server = Sshd(tmp_path, "::1")
    if not (server.path and shutil.which("ssh") and shutil.which("ssh-keygen")):
        pytest.skip("sshd, ssh or ssh-keygen is not installed (Debian: openssh-server)")
    server.start()
    try:
        line = [*server.arguments(slots=2), "-n", "2", "-s", "0", "--topo", "colocated"]
        launch = run([*line, "--hipress", sys.executable, str(SCRIPTS / "ipv6_store.py")], 90)
    finally:
        server.stop()
    assert launch.process.returncode == 0, launch.out + launch.err
    assert launch.out.count('"total": 3.0') == 2


@pytest.mark.slow
@needs_namespaces
@needs_ipv6
def test_jobs_between_hosts_without_ipv4():
    pytest.importorskip("torch")
    with ShapedNetwork(3, rate=None, ipv6=True) as network:
        results = run_cluster(
            SCRIPTS / "ipv6_store.py", servers=0, env=COLOCATED, network=network, timeout=60
        )
        for record in records(worker_outputs(results)):
            assert record["total"] == 3
            assert record["lent_bytes"] == 0
        command = [sys.executable, str(SCRIPTS / "ipv6_torch.py")]
        with TorchJob(command, 3, base_environment(), network=network) as job:
            found = records([result.output for result in job.wait(90, succeed=True)])
        assert len({record["digest"] for record in found}) == 1
        command = [sys.executable, str(SCRIPTS / "elastic_steps.py")]
        with ElasticJob(command, 3, network=network) as job:
            job.wait(90, succeed=True)
            assert [event["epoch"] for event in job.journal(0) if event["event"] == "view"] == [1]
