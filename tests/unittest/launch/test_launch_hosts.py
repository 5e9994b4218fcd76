"""Runs of tools/launch.py on other hosts: host files and ssh."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.launch import (
    MARK,
    REPORT,
    STUBBORN,
    check_roles,
    launched,
    marked,
    python,
    reports,
    run,
)
from hipress.base.addresses import resolve
from hipress.launch import cli, mpi, ssh
from hipress.launch.hostfile import Host, place, read_hostfile, workers_per_host
from hipress.launch.job import Elastic, JobSpec
from hipress.launch.launch_error import LaunchError
from scripts import SCRIPTS

# Host files


def test_hostfile(tmp_path):
    path = tmp_path / "hosts"
    path.write_text(
        "# two racks\nalpha slots=2  # big\n\nuser@beta:2222\n[::1]:22 slots=3\n"
        "10.0.0.7 slots=1 max_slots=4\n"
    )
    assert read_hostfile(str(path)) == [
        Host("alpha", None, 2),
        Host("user@beta", 2222),
        Host("::1", 22, 3),
        Host("10.0.0.7"),
    ]
    assert Host("user@beta").address == "beta"


def test_hostfile_takes_ipv6_addresses_in_brackets(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("[2001:db8::1] slots=2\nuser@[2001:DB8:0::1]:2222\n[::ffff:a00:2]\n")
    hosts = read_hostfile(str(path))
    assert hosts[:2] == [Host("2001:db8::1", None, 2), Host("user@2001:db8::1", 2222)]
    assert {host.address for host in hosts[:2]} == {"2001:db8::1"}
    assert resolve(hosts[2].address) == "10.0.0.2"


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("launcher", ["mpi", "slurm"])
def test_mpirun_and_srun_refuse_ipv6_addresses(launcher, elastic):
    job = JobSpec(2, 0, ["true"], elastic=Elastic(["a:1", "b:1"], 1) if elastic else None)
    hosts = [Host("alpha"), Host("user@2001:db8::1")]
    with pytest.raises(LaunchError, match=r"write a name for \[2001:db8::1\], or use --launcher"):
        mpi.tasks(job, hosts, ".", launcher)


def test_rsync_gets_ipv6_addresses_in_brackets(monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(ssh.shutil, "which", lambda name: name)
    monkeypatch.setattr(ssh.subprocess, "run", run)
    ssh.sync_directory([Host("user@2001:db8::1"), Host("::1"), Host("u@a")], "d", "ssh")
    assert [command[-1] for command in commands] == ["user@[2001:db8::1]:d", "[::1]:d", "u@a:d"]


def test_placement_fills_slots_in_order_and_goes_around():
    hosts = [Host("a", slots=2), Host("b")]
    assert [host.name for host in place(hosts, 5)] == ["a", "a", "b", "a", "a"]


@pytest.mark.parametrize(
    ("hosts", "count", "expected"),
    [
        ([Host("a"), Host("a"), Host("u@b"), Host("b")], 4, 2),
        ([Host("a", slots=2), Host("b"), Host("b")], 4, 2),
        ([Host("a", slots=2), Host("b", slots=2)], 3, 2),
        ([Host("a"), Host("b", slots=2)], 3, None),
        ([Host("a", slots=2), Host("b"), Host("c", slots=2)], 5, None),
        ([Host("a"), Host("b")], 4, None),  # around again
    ],
)
def test_workers_on_each_host(hosts, count, expected):
    assert workers_per_host(hosts, count) == expected


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("by_option", [False, True])
def test_an_interface_of_the_environment_goes_before_the_hosts_addresses(
    monkeypatch, tmp_path, elastic, by_option
):
    (tmp_path / "hosts").write_text("127.0.0.1\n")
    monkeypatch.delenv("DMLC_INTERFACE", raising=False)
    line = ["-n", "1", "--ssh", "true", "-H", str(tmp_path / "hosts")]
    if by_option:
        line += ["--env", "DMLC_INTERFACE=lo"]
    else:
        monkeypatch.setenv("DMLC_INTERFACE", "nosuch0" if elastic else "lo")
    line += ["--elastic"] if elastic else ["-s", "1"]
    monkeypatch.setattr(cli, "towards", lambda _: "192.0.2.1")
    *_, worker = cli.make_tasks(cli.make_parser().parse_args([*line, "true"]))
    env = worker.spec["env"]
    assert env["DMLC_INTERFACE"] in ("lo", "nosuch0") and "DMLC_NODE_HOST" not in env
    assert env.get("DMLC_PS_ROOT_URI", "127.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "FILE: this host file names no host"),
        ("# nothing\n\n", "FILE: this host file names no host"),
        (
            "good\nbad host\n",
            "FILE:2: 'host' is not understood; allowed: 'host', 'host:ssh-port', "
            "'user@host', each with 'slots=N' after it if wanted",
        ),
        (
            "a;b\n",
            "FILE:1: 'a;b' is no host; allowed: 'host', 'host:ssh-port', 'user@host', each "
            "with 'slots=N' after it if wanted",
        ),
        ("-oProxyCommand=x\n", "FILE:1: '-oProxyCommand=x' is no host; allowed: "),
        ("-l\n", "FILE:1: '-l' is no host; allowed: "),
        ("\n\na:port\n", "FILE:3: port is 'port', but must be a number from 1 to 65535"),
        ("a:0\n", "FILE:1: port is '0', but must be a number from 1 to 65535"),
        ("a:\n", "FILE:1: port is '', but must be a number from 1 to 65535"),
        ("a slots=0\n", "FILE:1: slots is '0', but must be a number from 1 to 65536"),
        ("a slots=\n", "FILE:1: slots is '', but must be a number from 1 to 65536"),
        ("a slots\n", "FILE:1: 'slots' is not understood; allowed: "),
        ("a gpus=2\n", "FILE:1: 'gpus=2' is not understood; allowed: "),
        (
            "2001:db8::1\n",
            "FILE:1: '2001:db8::1' is no host; allowed: 'host', 'host:ssh-port', "
            "'user@host', each with 'slots=N' after it if wanted, and an IPv6 address in brackets",
        ),
        ("[2001:db8:1]\n", "FILE:1: '[2001:db8:1]' is no IPv6 address; allowed: "),
        (
            "[fe80::1%eth0] slots=2\n",
            "FILE:1: fe80::1%eth0 is a link-local IPv6 address, which has a "
            "different meaning on each network interface",
        ),
    ],
)
def test_hostfile_errors_name_the_line(tmp_path, text, sentence):
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(LaunchError) as caught:
        read_hostfile(str(path))
    assert str(caught.value).startswith(sentence.replace("FILE", str(path)))


def test_hostfile_that_is_no_text(tmp_path):
    path = tmp_path / "hosts"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LaunchError, match="this host file is not a text file"):
        read_hostfile(str(path))


# ssh, with a real sshd on loopback


def with_mark(launch_arguments: list[str], mark: str) -> list[str]:
    """Return options that carry the test's mark to processes that do not inherit it."""
    return ["--env", f"{MARK}={mark}", *launch_arguments]


def test_ssh_job(sshd):
    launch = run(
        [
            *sshd.arguments(slots=2),
            "-n",
            "2",
            "-s",
            "1",
            "--env",
            "T_SPACES",
            "--env-worker",
            'T_QUOTES:it\'s "$HOME" `x` \\ ü',
            *python(REPORT),
        ],
        env={
            "T_SPACES": "  a  b ",
            "MXNET_KVSTORE_BIGARRAY_BOUND": "1000",
            "T_NOT_NAMED": "stays here",
        },
    )
    assert launch.process.returncode == 0, launch.err
    seen = reports(launch)
    check_roles(seen, 2, 1)
    for name in ("server 0", "worker 0", "worker 1"):
        env = seen[name]
        assert env["SSH_CONNECTION"].split()[3] == str(sshd.port)
        assert env["DMLC_NODE_HOST"] == env["DMLC_PS_ROOT_URI"] == "127.0.0.1"
        assert env["T_SPACES"] == "  a  b "
        assert env["MXNET_KVSTORE_BIGARRAY_BOUND"] == "1000"
        assert env["cwd"] == os.getcwd()
        assert "T_NOT_NAMED" not in env
    assert "SSH_CONNECTION" not in seen["scheduler"]
    assert seen["worker 1"]["T_QUOTES"] == 'it\'s "$HOME" `x` \\ ü'


def test_ssh_arguments_arrive_unchanged(sshd):
    arguments = ["a b", "", "it's", '"', "$HOME", "*", "\n", "-n", ";ls"]
    launch = run(
        [*sshd.arguments(), "-n", "1", *python("import sys; print(sys.argv[1:])"), *arguments]
    )
    assert f"[worker 0] {arguments!r}" in launch.out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "status", "text"),
    [
        ("sys.exit(5)", 5, "worker 1 on 127.0.0.1 exited with status 5 after "),
        (
            "os.kill(os.getpid(), 9)",
            137,
            "worker 1 on 127.0.0.1 was killed by SIGKILL (signal 9) after ",
        ),
    ],
)
def test_ssh_death_is_named_and_stops_the_job(sshd, then, status, text):
    script = SCRIPTS / "launch" / "only.py"
    command = [*python(script), "DMLC_WORKER_ID", "1", then, "time.sleep(60)"]
    with launched([*sshd.arguments(), "-n", "2", "-s", "1"]) as launch:
        pass  # only for a mark
    mark = launch.mark
    launch = run([*with_mark(sshd.arguments(), mark), "-n", "2", "-s", "1", *command])
    assert launch.process.returncode == status
    assert f"hipress-launch: {text}" in launch.err
    assert not marked(mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ssh_nothing_stays_behind(sshd, number):
    mark = f"ssh-{os.getpid()}-{number}"
    arguments = [*with_mark(sshd.arguments(), mark), "-n", "2", "-s", "1", "--grace", "0.5"]
    with launched([*arguments, *python(STUBBORN)], env={MARK: mark}) as launch:
        launch.mark = mark
        launch.read_lines(4, "ready")
        launch.process.send_signal(number)
        assert launch.finish(20.0) == (130 if number == signal.SIGINT else -9)
        launch.gone(5.0)


def test_ssh_secret_is_on_no_command_line(sshd):
    mark = f"ssh-secret-{os.getpid()}"
    code = "import os, time; print(os.environ['HIPRESS_SECRET'], flush=True); time.sleep(60)"
    with launched(
        [*with_mark(sshd.arguments(), mark), "-n", "1", "-s", "1", *python(code)], env={MARK: mark}
    ) as launch:
        launch.mark = mark
        secrets = {launch.process.stdout.readline().split()[-1] for _ in range(3)}
        assert len(secrets) == 1
        secret = secrets.pop()
        seen = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                assert secret not in command
                seen += 1
        assert seen > 5


@pytest.mark.slow
def test_ssh_host_that_refuses(sshd, tmp_path):
    from hipress.launch.job import free_port

    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1:{free_port('127.0.0.1')}\n")
    launch = run([*sshd.arguments(), "-H", str(hosts), "-n", "1", "sleep", "60"])
    assert launch.process.returncode == 255
    assert "Connection refused" in launch.err
    assert re.search(
        r"hipress-launch: (server|worker) 0 on 127.0.0.1 exited with status 255 "
        r"\(so ssh ends when it cannot connect\)",
        launch.err,
    )


def test_ssh_sync_directory(sshd, tmp_path):
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    source, target = tmp_path / "source dir", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "train.py").write_text("import os; print('here', os.getcwd())")
    (target / "kept").write_text("")
    launch = run(
        [*sshd.arguments(), "-n", "1", "--sync-dst-dir", str(target), sys.executable, "train.py"],
        cwd=source,
    )
    assert launch.process.returncode == 0, launch.err
    assert f"[worker 0] here {target}" in launch.out
    assert (target / "train.py").exists() and (target / "kept").exists()


def test_ssh_sync_failure_is_one_sentence(sshd):
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    launch = run([*sshd.arguments(), "-n", "1", "--sync-dst-dir", "/proc/no/such", "true"])
    assert launch.process.returncode == 2
    assert launch.err.startswith("hipress-launch: copying to 127.0.0.1:/proc/no/such failed: ")
    assert len(launch.err.splitlines()) == 1


def test_supervisors_need_nothing_but_an_old_python():
    import ast

    from hipress.base import process_table
    from hipress.launch import supervisor

    for module in (supervisor, process_table):
        tree = ast.parse(Path(module.__file__).read_text(), feature_version=(3, 6))
        modules = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for name in node.names
        }
        assert modules <= sys.stdlib_module_names
        of = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert of <= {process_table.__name__}  # which is sent with the supervisor


def test_ssh_client_is_what_the_option_says(tmp_path):
    """The ssh client is what --ssh says, which may hold options and quotes; the remote command is
    one argument after the host."""
    record = tmp_path / "arguments"
    ssh = tmp_path / "my ssh"
    ssh.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{record}'\nexit 255\n")
    ssh.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("user@127.0.0.1:77\n")
    subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parents[3] / "tools" / "launch.py"),
            "-n",
            "1",
            "-s",
            "1",
            "-H",
            str(hosts),
            "--ssh",
            f"'{ssh}' -v",
            "true",
        ],
        capture_output=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    arguments = record.read_text().splitlines()
    assert arguments[0] == "-v"
    assert arguments[-4:-1] == ["-p", "77", "user@127.0.0.1"]
    assert arguments[-1].startswith("exec python3 -c '")
