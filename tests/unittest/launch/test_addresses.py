"""Addresses of a machine for other hosts, also where its own name means loopback to it."""

import contextlib
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from harness import ROOT, netns
from harness.marks import needs_namespaces
from hipress.base import addresses

pytest.importorskip("torch")

SHOW = "from hipress.torch.executors.group_job import own_host; print(own_host())"


def test_loopback():
    assert addresses.is_loopback("127.0.1.1") and addresses.is_loopback("::1%lo")
    assert not addresses.is_loopback("10.0.0.1")
    assert addresses.behind_loopback("127.0.0.1", ["127.0.0.1", "localhost"]) is None
    assert addresses.behind_loopback("10.0.0.1", ["127.0.0.1"]) is None


def test_brackets_around_dmlc_node_host_are_not_part_of_the_address(monkeypatch):
    from hipress.torch.executors.group_job import own_host

    monkeypatch.setenv("DMLC_NODE_HOST", "[2001:db8::7]")
    assert own_host() == "2001:db8::7"


def test_mapped_address_counts_as_the_ipv4_address_it_contains():
    assert addresses.resolve("::ffff:10.0.0.2") == "10.0.0.2"
    assert addresses.is_loopback("::ffff:127.0.0.1")
    assert not addresses.is_loopback("::ffff:10.0.0.2")
    assert addresses.is_loopback("::1") and not addresses.is_loopback("2001:db8::1")
    assert addresses.interface_with("::ffff:127.0.0.1") == "lo"


def test_addresses_are_joined_and_split_with_brackets_for_ipv6():
    for host, port, text in (("10.0.0.2", 80, "10.0.0.2:80"), ("::1", 80, "[::1]:80")):
        assert addresses.join(host, port) == text
        assert addresses.split(text) == (host, port)
    assert addresses.join("[::1]", 80) == "[::1]:80"
    for wrong in ("::1:80", "::1", "[::1]", "[]:80", "[host]:80", "host:0", ":80", "host:٣"):
        with pytest.raises(ValueError, match="IPv6 address"):
            addresses.split(wrong)


def test_ipv4_address_with_a_route_is_preferred():
    def entry(address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        at = (address, 0, 0, 0) if ":" in address else (address, 0)
        return family, socket.SOCK_STREAM, 6, "", at

    assert addresses.preferred([entry("::1"), entry("127.0.0.1")]) == entry("127.0.0.1")
    unreachable = entry("0.0.0.0")  # represents an IPv4 address without a route
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "_has_route", lambda one: one != unreachable)
        assert addresses.preferred([entry("::1"), unreachable]) == entry("::1")
        assert addresses.preferred([unreachable]) == unreachable


def test_interface_address_is_of_the_preferred_family(monkeypatch, tmp_path):
    """The interface's address is of the preferred family. Link-local addresses are not used, and
    addresses that expire only if there is no other."""
    rows = [
        ("fe80000000000000000000000000aaaa", "20", "80"),
        ("20010db8000000000000000000000001", "00", "01"),  # temporary
        ("20010db8000000000000000000000002", "00", "80"),
    ]
    table = tmp_path / "if_inet6"
    table.write_text("".join(f"{a} 01 40 {scope} {flags}       lo\n" for a, scope, flags in rows))
    monkeypatch.setattr(addresses, "_IF_INET6", table)
    assert addresses.of_interface("lo") == "127.0.0.1"
    assert addresses.of_interface("lo", socket.AF_INET6) == "2001:db8::2"
    assert addresses.interface_with("2001:db8::1") == "lo"
    monkeypatch.setattr(addresses, "_v4_of_interface", lambda name: [])
    assert addresses.of_interface("lo") == "2001:db8::2"
    table.write_text(f"{rows[0][0]} 01 40 20 80       lo\n")
    with pytest.raises(ValueError, match="link-local IPv6 addresses do not count"):
        addresses.of_interface("lo")


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("machine0", "its own"),
        ("machine1", "its own"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
    ],
)
def test_ranks_of_torch(tmp_path, master, expected):
    with netns.ShapedNetwork(2, rate=None) as network:
        mine, other = network.address(0), network.address(1)
        hosts = tmp_path / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.1.1 machine0\n{other} machine1\n")
        see = f"mount --bind {hosts} /etc/hosts && exec {sys.executable} -c '{SHOW}'"
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "python"),
            "MASTER_ADDR": master,
        }
        command = network.command(0, ["unshare", "--mount", "sh", "-c", see])
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == (mine if expected == "its own" else expected), done.stderr


class FoundAt(Exception):
    """Address lookup that reports which address a worker would have given to other workers."""


def test_an_interface_that_is_named_goes_before_the_host_files_addresses(monkeypatch):
    """A named interface takes precedence over the host file's addresses. In elastic jobs, the
    agents' addresses are not those that training is to use."""
    from hipress.elastic.training import arrays
    from hipress.torch.elastic import adapter

    def stop(*_, **__):
        raise FoundAt

    def join(_rank, common, *_):
        raise FoundAt(common["DMLC_NODE_HOST"])

    for name in ("DMLC_INTERFACE", "DMLC_NODE_HOST", "GLOO_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(arrays.scheduler, "join", join)
    monkeypatch.setattr(adapter.dist, "TCPStore", stop)
    agent = SimpleNamespace(address="192.0.2.7", share=stop)
    view = SimpleNamespace(epoch=1, identity="view", members=[SimpleNamespace(host="192.0.2.7")])
    members = SimpleNamespace(
        agent=agent,
        view=view,
        rank=1,
        size=2,
        timeout=1.0,
        setup_seconds=1.0,
        fetch=lambda *_: "0",
    )
    own = {"members": members, "_engine": None, "_setup_timeout": None}

    def of_arrays():
        with pytest.raises(FoundAt) as caught:
            arrays.ArrayAdapter._join(SimpleNamespace(**own), range(2))
        return str(caught.value)

    def of_torch():
        before = dict(os.environ)
        with contextlib.ExitStack() as environment:
            one = SimpleNamespace(**own, _environment=environment)
            with pytest.raises(FoundAt):
                adapter.TorchAdapter.open(one)
            found = one._host, os.environ["GLOO_SOCKET_IFNAME"]
        assert dict(os.environ) == before
        return found

    assert of_arrays() == "192.0.2.7" and of_torch() == ("192.0.2.7", "")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    assert of_torch() == ("127.0.0.1", "lo")
    os.environ["DMLC_INTERFACE"] = "lo"
    assert of_arrays() == "127.0.0.1" and of_torch() == ("127.0.0.1", "lo")
    os.environ["DMLC_NODE_HOST"] = "192.0.2.8"
    assert of_arrays() == "192.0.2.8" and of_torch() == ("192.0.2.8", "lo")
