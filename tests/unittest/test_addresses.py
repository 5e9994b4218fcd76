"""By which address others reach a machine, also where its own name means loopback to it."""

import os
import subprocess
import sys

import pytest

from harness import ROOT, netns
from harness.marks import needs_namespaces
from hipress import addresses

pytest.importorskip("torch")

SHOW = "from hipress.torch.executors.job import own_host; print(own_host())"


def test_loopback():
    assert addresses.is_loopback("127.0.1.1") and addresses.is_loopback("::1%lo")
    assert not addresses.is_loopback("10.0.0.1")
    assert addresses.behind_loopback("127.0.0.1", ["127.0.0.1", "localhost"]) is None
    assert addresses.behind_loopback("10.0.0.1", ["127.0.0.1"]) is None


@needs_namespaces
@pytest.mark.parametrize(
    ("master", "expected"),
    [("machine0", "its own"), ("machine1", "its own"), ("127.0.0.1", "127.0.0.1"),
     ("127.0.0.2", "127.0.0.1"), ("localhost", "127.0.0.1")],
)  # fmt: skip
def test_ranks_of_torch(tmp_path, master, expected):
    with netns.ShapedNetwork(2, rate=None) as network:
        mine, other = network.address(0), network.address(1)
        hosts = tmp_path / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.1.1 machine0\n{other} machine1\n")
        see = f"mount --bind {hosts} /etc/hosts && exec {sys.executable} -c '{SHOW}'"
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "python"), "MASTER_ADDR": master,
        }  # fmt: skip
        command = network.command(0, ["unshare", "--mount", "sh", "-c", see])
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == (mine if expected == "its own" else expected), done.stderr
