"""By which address others reach a machine, also where its own name means loopback to it."""

import os
import subprocess
import sys
from types import SimpleNamespace

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


class FoundAt(Exception):
    """Says which address a worker would have given to the others."""


def test_an_interface_that_is_named_goes_before_the_host_files_addresses(monkeypatch):
    """In elastic jobs: the agents' addresses are not those that training is to use."""
    from hipress.elastic_training import arrays
    from hipress.torch.elastic import session

    def stop(*_, **__):
        raise FoundAt

    def join(_rank, common, *_):
        raise FoundAt(common["DMLC_NODE_HOST"])

    for name in ("DMLC_INTERFACE", "DMLC_NODE_HOST", "GLOO_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(arrays.scheduler, "join", join)
    monkeypatch.setattr(session.dist, "TCPStore", stop)
    agent = SimpleNamespace(address="192.0.2.7", share=stop)
    view = SimpleNamespace(epoch=1, members=[SimpleNamespace(host="192.0.2.7")])
    own = {
        "_agent": agent, "view": view, "rank": 1, "size": 2, "_engine": None,
        "_state": SimpleNamespace(timeout=1.0), "_setup_seconds": 1.0, "_setup_timeout": None,
        "fetch": lambda *_: "0",
    }  # fmt: skip

    def of_arrays():
        with pytest.raises(FoundAt) as caught:
            arrays.ArraySession._join(SimpleNamespace(**own), range(2))
        return str(caught.value)

    def of_torch():
        with pytest.raises(FoundAt):
            session.Session.gather(SimpleNamespace(**own))
        return os.environ.pop("DMLC_NODE_HOST"), os.environ.pop("GLOO_SOCKET_IFNAME")

    assert of_arrays() == "192.0.2.7" and of_torch() == ("192.0.2.7", "")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    assert of_torch() == ("127.0.0.1", "lo")
    os.environ["DMLC_INTERFACE"] = "lo"
    assert of_arrays() == "127.0.0.1" and of_torch() == ("127.0.0.1", "lo")
    os.environ["DMLC_NODE_HOST"] = "192.0.2.8"
    assert of_arrays() == "192.0.2.8" and of_torch() == ("192.0.2.8", "lo")
