"""Bytes on the network: HiPress sends no plaintext that other machines could read."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

import pytest

from harness.capture import Capture
from harness.cluster import BOOT, Cluster
from harness.elastic import ElasticJob
from harness.marks import needs_namespaces
from harness.netns import ShapedNetwork
from harness.processes import Processes, base_environment
from harness.torch_job import TorchJob
from wire_jobs import MARK

pytestmark = needs_namespaces

HERE = Path(__file__).parents[1]
SECRET = "a-secret-that-is-on-no-wire"
GRADIENT = MARK * 8
OPTIMIZER = b"mxnet.optimizer"
AGENT_MESSAGES = b'["message"'
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def start(kind: str, network: ShapedNetwork, tls: str) -> Processes:
    """Start a job with two workers on two nodes."""
    env = base_environment({"HIPRESS_SECRET": SECRET, "HIPRESS_TLS": tls})
    env["PYTHONPATH"] += f":{HERE}"
    program = [sys.executable, str(HERE / "wire_jobs" / f"{kind}.py")]
    if kind == "torch_ddp":
        return TorchJob(program, 2, env, network=network)
    if kind == "torch_elastic":
        return ElasticJob(program, 2, env=env, network=network)
    serverless = kind == "serverless"
    return Cluster(
        program,
        workers=2,
        servers=0 if serverless else 1,
        server_command=program if serverless else BOOT,
        env={"HIPRESS_SECRET": SECRET, "HIPRESS_TOPOLOGY": "colocated" if serverless else "ps"},
        base=env,
        network=network,
        node_of=lambda role, rank: rank,
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("tls", ["auto", "off"])
@pytest.mark.parametrize(
    ("kind", "marks"),
    [
        ("mxnet_store", [GRADIENT, OPTIMIZER]),
        ("serverless", [GRADIENT]),
        pytest.param("torch_ddp", [GRADIENT], marks=needs_torch),
        pytest.param("torch_elastic", [GRADIENT, AGENT_MESSAGES], marks=needs_torch),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hipress_sends_no_plaintext_between_machines(
    kind: str, marks: list[bytes], tls: str
) -> None:
    """HiPress sends no plaintext between machines. Without TLS the same bytes are found, or this
    test would prove nothing."""
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(ShapedNetwork(2, rate=None))
        capture = stack.enter_context(Capture(network))
        job = stack.enter_context(start(kind, network, tls))
        job.wait(90, succeed=True)
        seen = capture.stop()
    assert SECRET.encode() not in seen
    assert [mark for mark in marks if mark in seen] == (marks if tls == "off" else [])
