"""tools/launch.py on other hosts: host files, ssh, mpirun, srun."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hipress.launcher import mpi
from hipress.launcher.errors import LaunchError
from hipress.launcher.hostfile import Host, place, read_hostfile
from hipress.launcher.job import Job
from launch_helpers import MARK, STUBBORN, Sshd, launched, marked, python, run

REPORT = "import json, os; print(json.dumps(dict(os.environ, cwd=os.getcwd())))"


def reports(launch) -> dict[str, dict[str, str]]:
    """Environment of each process, by its prefix."""
    found = {}
    for line in launch.out.splitlines():
        match = re.fullmatch(r"\[([a-z]+(?: \d+)?)\] (\{.*\})", line)
        assert match, line
        found[match[1]] = json.loads(match[2])
    return found


def check_roles(seen: dict[str, dict[str, str]], workers: int, servers: int) -> None:
    """Every role is there once, with what it needs to find the others."""
    names = ["scheduler", *(f"server {i}" for i in range(servers)),
             *(f"worker {i}" for i in range(workers))]
    assert sorted(seen) == sorted(names)
    for name, env in seen.items():
        role, _, index = name.partition(" ")
        assert env["DMLC_ROLE"] == role
        assert env.get("DMLC_WORKER_ID") == (index if role == "worker" else None)
        assert env.get("DMLC_SERVER_ID") == (index if role == "server" else None)
        assert (env["DMLC_NUM_WORKER"], env["DMLC_NUM_SERVER"]) == (str(workers), str(servers))
    for key in ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "HIPRESS_SECRET"):
        assert len({env[key] for env in seen.values()}) == 1


# Host files


def test_hostfile(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# two racks\nalpha slots=2  # big\n\nuser@beta:2222\n[::1]:22 slots=3\n"
                    "10.0.0.7 slots=1 max_slots=4\n")
    assert read_hostfile(str(path)) == [
        Host("alpha", None, 2), Host("user@beta", 2222), Host("::1", 22, 3), Host("10.0.0.7")]
    assert Host("user@beta").address == "beta"


def test_placement_fills_slots_in_order_and_goes_around():
    hosts = [Host("a", slots=2), Host("b")]
    assert [host.name for host in place(hosts, 5)] == ["a", "a", "b", "a", "a"]


@pytest.mark.parametrize(("text", "sentence"), [
    ("", "the host file 'FILE' names no host"),
    ("# nothing\n\n", "the host file 'FILE' names no host"),
    ("good\nbad host\n", "FILE:2: 'host' is not understood; allowed: 'host', 'host:ssh-port', "
     "'user@host', each with 'slots=N' after it if wanted"),
    ("a;b\n", "FILE:1: 'a;b' is no host; allowed: 'host', 'host:ssh-port', 'user@host', each "
     "with 'slots=N' after it if wanted"),
    ("-oProxyCommand=x\n", "FILE:1: '-oProxyCommand=x' is no host; allowed: "),
    ("-l\n", "FILE:1: '-l' is no host; allowed: "),
    ("\n\na:port\n", "FILE:3: port is 'port', but must be a number from 1 to 65535"),
    ("a:0\n", "FILE:1: port is '0', but must be a number from 1 to 65535"),
    ("a:\n", "FILE:1: port is '', but must be a number from 1 to 65535"),
    ("a slots=0\n", "FILE:1: slots is '0', but must be a number from 1 to 65536"),
    ("a slots=\n", "FILE:1: slots is '', but must be a number from 1 to 65536"),
    ("a slots\n", "FILE:1: 'slots' is not understood; allowed: "),
    ("a gpus=2\n", "FILE:1: 'gpus=2' is not understood; allowed: "),
])
def test_hostfile_errors_name_the_line(tmp_path, text, sentence):
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(LaunchError) as caught:
        read_hostfile(str(path))
    assert str(caught.value).startswith(sentence.replace("FILE", str(path)))


def test_hostfile_that_is_no_text(tmp_path):
    path = tmp_path / "hosts"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LaunchError, match="cannot read the host file"):
        read_hostfile(str(path))


# ssh, with a real sshd on loopback


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    if server.path is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("sshd, ssh or ssh-keygen is not installed (Debian: openssh-server)")
    try:
        server.start()
        yield server
    finally:
        server.stop()


def with_mark(launch_arguments: list[str], mark: str) -> list[str]:
    """Options that carry the test's mark to processes that do not inherit it."""
    return ["--env", f"{MARK}={mark}", *launch_arguments]


def test_ssh_job(sshd):
    launch = run([*sshd.arguments(slots=2), "-n", "2", "-s", "1", "--env", "T_SPACES",
                  "--env-worker", "T_QUOTES:it's \"$HOME\" `x` \\ ü", *python(REPORT)],
                 env={"T_SPACES": "  a  b ", "MXNET_KVSTORE_BIGARRAY_BOUND": "1000",
                      "T_NOT_NAMED": "stays here"})
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
    assert seen["worker 1"]["T_QUOTES"] == "it's \"$HOME\" `x` \\ ü"


def test_ssh_arguments_arrive_unchanged(sshd):
    arguments = ["a b", "", "it's", '"', "$HOME", "*", "\n", "-n", ";ls"]
    launch = run([*sshd.arguments(), "-n", "1", *python("import sys; print(sys.argv[1:])"),
                  *arguments])
    assert f"[worker 0] {arguments!r}" in launch.out.splitlines()


@pytest.mark.parametrize(("then", "status", "text"), [
    ("sys.exit(5)", 5, "worker 1 on 127.0.0.1 exited with status 5 after "),
    ("os.kill(os.getpid(), 9)", 137,
     "worker 1 on 127.0.0.1 exited with status 137 (128 + 9: SIGKILL) after "),
])
def test_ssh_death_is_named_and_stops_the_job(sshd, then, status, text):
    code = (f"import os, sys, time\nif os.environ.get('DMLC_WORKER_ID') == '1': {then}\n"
            f"time.sleep(60)")
    with launched([*sshd.arguments(), "-n", "2", "-s", "1"]) as launch:
        pass  # only for a mark
    mark = launch.mark
    launch = run([*with_mark(sshd.arguments(), mark), "-n", "2", "-s", "1", *python(code)])
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
    with launched([*with_mark(sshd.arguments(), mark), "-n", "1", "-s", "1", *python(code)],
                  env={MARK: mark}) as launch:
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


def test_ssh_host_that_refuses(sshd, tmp_path):
    from hipress.launcher.job import free_port

    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1:{free_port('127.0.0.1')}\n")
    launch = run([*sshd.arguments(), "-H", str(hosts), "-n", "1", "sleep", "60"])
    assert launch.process.returncode == 255
    assert "Connection refused" in launch.err
    assert re.search(r"hipress-launch: (server|worker) 0 on 127.0.0.1 exited with status 255 "
                     r"\(so ssh ends when it cannot connect\)", launch.err)


def test_ssh_sync_directory(sshd, tmp_path):
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    source, target = tmp_path / "source dir", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "train.py").write_text("import os; print('here', os.getcwd())")
    (target / "kept").write_text("")
    launch = run([*sshd.arguments(), "-n", "1", "--sync-dst-dir", str(target),
                  sys.executable, "train.py"], cwd=source)
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


def test_supervisor_needs_nothing_but_an_old_python():
    import ast

    from hipress.launcher import supervisor

    tree = ast.parse(Path(supervisor.__file__).read_text(), feature_version=(3, 6))
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
               for name in node.names}
    assert modules <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


# mpirun and srun


FAKE = """#!{python}
# Starts the ranks as {kind} would, tells what it was called with, ends all when one fails.
import json, os, subprocess, sys, time
if "--version" in sys.argv:
    print({version!r})
    sys.exit(0)
args = sys.argv[1:]
program = args.index({program!r})
hosts = None
if os.environ.get("SLURM_HOSTFILE"):
    hosts = open(os.environ["SLURM_HOSTFILE"]).read().split()
with open({record!r}, "w") as file:
    json.dump({{"args": args[:program], "all": args, "hosts": hosts}}, file)
number = int([a for a in args if a.isdigit() or a.startswith("--ntasks=")][0].split("=")[-1])
ranks = [subprocess.Popen(args[program:], env=dict(os.environ, {variable}=str(rank)))
         for rank in range(number)]
status = 0
while ranks:
    for rank in list(ranks):
        if rank.poll() is not None:
            ranks.remove(rank)
            status = status or rank.returncode
            if status:
                for other in ranks:
                    other.terminate()
    time.sleep(0.01)
sys.exit(status)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a fake mpirun or srun onto PATH; returns what reads its record."""

    def make(kind: str):
        version, variable, name = {
            "openmpi": ("mpirun (Open MPI) 4.1.4", "OMPI_COMM_WORLD_RANK", "mpirun"),
            "hydra": ("HYDRA build details:\n    Version: 4.0.2", "PMI_RANK", "mpirun"),
            "slurm": ("slurm 22.05.8", "SLURM_PROCID", "srun"),
            "other": ("some other MPI 1.0", "RANK", "mpirun"),
        }[kind]
        record = tmp_path / "record.json"
        path = tmp_path / "bin" / name
        path.parent.mkdir()
        path.write_text(FAKE.format(python=sys.executable, kind=kind, version=version,
                                    program=sys.executable, record=str(record), variable=variable))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return lambda: json.loads(record.read_text())

    return make


LAUNCHER_OF = {"openmpi": "mpi", "hydra": "mpi", "slurm": "slurm"}


@pytest.mark.parametrize("kind", ["openmpi", "hydra", "slurm"])
def test_mpirun_and_srun_run_every_role(fake, tmp_path, kind):
    record = fake(kind)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 slots=1\nlocalhost slots=2\n")
    launch = run(["-n", "3", "-s", "2", "--launcher", LAUNCHER_OF[kind], "-H", str(hosts),
                  "--env-worker", "T_WORKER:yes", *python(REPORT)])
    assert launch.process.returncode == 0, launch.err
    seen = reports(launch)
    check_roles(seen, 3, 2)
    assert "T_WORKER" not in seen["server 0"] and seen["worker 2"]["T_WORKER"] == "yes"
    called = record()
    secret = seen["worker 0"]["HIPRESS_SECRET"]
    assert all(secret not in argument for argument in called["all"])
    arguments = " ".join(called["args"])
    if kind == "openmpi":
        assert arguments == ("-np 5 --map-by slot:OVERSUBSCRIBE --bind-to none "
                             "-x HIPRESS_LAUNCH_TABLE --host 127.0.0.1:2,localhost:3")
    elif kind == "hydra":
        assert arguments == "-genvall -n 5 -hosts 127.0.0.1:2,localhost:3"
    else:
        assert arguments.startswith("--ntasks=5 --export=ALL ")
        assert "--nodelist=127.0.0.1,localhost --nodes=2 --distribution=arbitrary" in arguments
        assert called["hosts"] == ["127.0.0.1"] * 2 + ["localhost"] * 3


@pytest.mark.parametrize("kind", ["openmpi", "hydra", "slurm"])
@pytest.mark.parametrize(("then", "status", "text"), [
    ("sys.exit(4)", 4, "worker 1 exited with status 4 after "),
    ("os.kill(os.getpid(), 9)", 137, "worker 1 was killed by SIGKILL (signal 9) after "),
])
def test_mpirun_and_srun_name_the_dead(fake, kind, then, status, text):
    fake(kind)
    code = (f"import os, sys, time\nif os.environ.get('DMLC_WORKER_ID') == '1': {then}\n"
            f"time.sleep(60)")
    launch = run(["-n", "2", "-s", "1", "--launcher", LAUNCHER_OF[kind], *python(code)])
    assert launch.process.returncode == status
    assert f"hipress-launch: {text}" in launch.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_mpirun_leaves_nothing(fake, number):
    fake("openmpi")
    with launched(["-n", "1", "-s", "1", "--launcher", "mpi", "--grace", "0.5",
                   *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(number)
        launch.finish(20.0)
        launch.gone(5.0)


def test_unknown_or_missing_mpirun(fake, monkeypatch, tmp_path):
    fake("other")
    launch = run(["-n", "1", "--launcher", "mpi", "true"])
    assert launch.process.returncode == 2
    assert "is neither Open MPI's nor MPICH's (Hydra); its --version says 'some other MPI 1.0'" \
        in launch.err
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for launcher, name in (("mpi", "mpirun"), ("slurm", "srun")):
        launch = run(["-n", "1", "--launcher", launcher, "true"])
        assert launch.process.returncode == 2
        assert launch.err == (f"hipress-launch: --launcher {launcher} needs {name}, which is not "
                              f"on PATH here\n")


def test_ranks_are_numbered_host_by_host():
    job = Job(num_workers=3, num_servers=2, command=["true"])
    order = mpi.ranks_by_host(job, [Host("b"), Host("a", slots=2)])
    assert [(str(rank), host) for rank, host in order] == [
        ("server 0", "b"), ("worker 0", "b"),
        ("server 1", "a"), ("worker 1", "a"), ("worker 2", "a")]
    assert [host for _, host in mpi.ranks_by_host(job, [])] == [""] * 5


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun is installed")
def test_real_mpirun():
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launch = run(["-n", "2", "-s", "2", "--launcher", "mpi", *python(REPORT)], env=env)
    assert launch.process.returncode == 0, launch.err
    check_roles(reports(launch), 2, 2)
    code = "import os, time\nif os.environ.get('DMLC_WORKER_ID') == '1': os._exit(6)\ntime.sleep(9)"
    launch = run(["-n", "2", "-s", "1", "--launcher", "mpi", *python(code)], env=env)
    assert launch.process.returncode == 6
    assert "hipress-launch: worker 1 exited with status 6 after " in launch.err


def test_ssh_client_is_what_the_option_says(tmp_path):
    """--ssh may hold options and quotes; the remote command is one argument after the host."""
    record = tmp_path / "arguments"
    ssh = tmp_path / "my ssh"
    ssh.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{record}'\nexit 255\n")
    ssh.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("user@127.0.0.1:77\n")
    subprocess.run([sys.executable, str(Path(__file__).parents[2] / "tools" / "launch.py"),
                    "-n", "1", "-s", "1", "-H", str(hosts), "--ssh", f"'{ssh}' -v", "true"],
                   capture_output=True, timeout=30, stdin=subprocess.DEVNULL)
    arguments = record.read_text().splitlines()
    assert arguments[0] == "-v"
    assert arguments[-4:-1] == ["-p", "77", "user@127.0.0.1"]
    assert arguments[-1].startswith("exec python3 -c '")
