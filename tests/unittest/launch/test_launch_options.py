"""Options of tools/launch.py: the processes' environment, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT
from harness.launch import LAUNCH, REPORT, launched, marked, python, reports, run
from harness.processes import wait_until
from scripts import SCRIPTS


def test_environment_of_each_role():
    launch = run(
        [
            "-n",
            "2",
            "-s",
            "1",
            "--env",
            "T_ALL=a=b:c",
            "--env",
            "T_HERE",
            "--env-worker",
            "T_WORKER:w:x",
            "--env-server",
            "T_SERVER=s",
            "--env-server",
            "T_ALL:server",
            *python(REPORT),
        ],
        env={"T_HERE": "value from here", "DMLC_ROLE": "server"},
    )
    seen = reports(launch)
    assert sorted(seen) == ["scheduler", "server 0", "worker 0", "worker 1"]
    for name, env in seen.items():
        role, _, index = name.partition(" ")
        assert env["DMLC_ROLE"] == role
        assert (env["DMLC_NUM_WORKER"], env["DMLC_NUM_SERVER"]) == ("2", "1")
        assert env["DMLC_PS_ROOT_URI"] == env["DMLC_NODE_HOST"] == "127.0.0.1"
        assert env.get("DMLC_WORKER_ID") == (index if role == "worker" else None)
        assert env.get("DMLC_SERVER_ID") == (index if role == "server" else None)
        assert env["T_HERE"] == "value from here"
        assert env["T_ALL"] == ("server" if role == "server" else "a=b:c")
        assert env.get("T_WORKER") == ("w:x" if role == "worker" else None)
        assert env.get("T_SERVER") == ("s" if role == "server" else None)
        assert env["OMP_NUM_THREADS"] == str(max(1, len(os.sched_getaffinity(0)) // 2))
        assert "HIPRESS_LAUNCHED" not in env
    assert len({env["DMLC_PS_ROOT_PORT"] for env in seen.values()}) == 1
    secrets = {env["HIPRESS_SECRET"] for env in seen.values()}
    assert len(secrets) == 1 and re.fullmatch("[0-9a-f]{64}", secrets.pop())


def test_every_job_has_its_own_secret_and_port_can_be_chosen():
    from hipress.launch.job import free_port

    port = free_port("127.0.0.1")
    first, second = (
        reports(run(["-n", "1", "-p", str(port), "-i", "lo", *python(REPORT)])) for _ in range(2)
    )
    assert first["scheduler"]["HIPRESS_SECRET"] != second["scheduler"]["HIPRESS_SECRET"]
    assert first["worker 0"]["DMLC_PS_ROOT_PORT"] == str(port)
    assert first["worker 0"]["DMLC_INTERFACE"] == "lo"
    assert first["worker 0"]["DMLC_PS_ROOT_URI"] == "127.0.0.1"


def test_secret_is_on_no_command_line():
    code = "import os, time; print(os.environ['HIPRESS_SECRET'], flush=True); time.sleep(60)"
    with launched(["-n", "1", *python(code)]) as launch:
        secret = launch.process.stdout.readline().decode().split()[-1].encode()
        assert len(secret) == 64
        pids = marked(launch.mark)
        assert len(pids) >= 4
        for pid in pids:
            assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_hipress_runs_the_script_on_workers_and_its_own_module_elsewhere(tmp_path):
    package = tmp_path / "mxnet_hipress"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for module in ("__main__", "boot"):
        (package / f"{module}.py").write_text(
            "import os, sys\n"
            f"print('{module}', sys.flags.optimize, os.environ['HIPRESS_LAUNCHED'], sys.argv[1:])"
        )
    (tmp_path / "train.py").touch()
    # The fake package must come before the source tree's.
    script = SCRIPTS / "launch" / "without_source_tree.py"
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            str(ROOT / "python"),
            "-n",
            "1",
            "--hipress",
            "--env",
            f"PYTHONPATH={tmp_path}",
            "--",
            sys.executable,
            "-O",
            "train.py",
            "--lr",
            "0.1",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[scheduler] boot 1 1 []",
        "[server 0] boot 1 1 []",
        "[worker 0] __main__ 1 1 ['train.py', '--lr', '0.1']",
    ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train.py --x 1", (["PY"], ["train.py", "--x", "1"])),
        ("python train.py", (["python"], ["train.py"])),
        (
            "/usr/bin/python3.11 -u -W ignore train.py -c 3",
            (["/usr/bin/python3.11", "-u", "-W", "ignore"], ["train.py", "-c", "3"]),
        ),
        ("python3 -m pkg.train --x", (["python3"], ["-m", "pkg.train", "--x"])),
    ],
)
def test_split_script(command, expected):
    from hipress.launch.job import split_script

    assert split_script(command.split(), "PY") == expected


MXNET_COMMAND_LINES = [
    "-n 2 --launcher local COMMAND",
    "-n 2 -s 2 --launcher local COMMAND",
    "--num-workers 2 --num-servers 2 --launcher local COMMAND",
    "--launcher local -n 2 -s 2 --env OMP_NUM_THREADS=1 --env-worker A:1 --env-server B:2 COMMAND",
    "-n2 -s2 --p3 --launcher=local -- COMMAND",
    "-n 2 --cluster local COMMAND",
]


@pytest.mark.parametrize("line", MXNET_COMMAND_LINES)
def test_command_lines_of_mxnets_launcher(line):
    arguments = line.split()[:-1] + python("import os; print(os.environ['DMLC_NUM_SERVER'])")
    launch = run(arguments)
    assert launch.process.returncode == 0, launch.err
    assert len(launch.out.splitlines()) == 5
    assert all(text.endswith("] 2") for text in launch.out.splitlines())


@pytest.mark.parametrize(
    ("line", "servers", "expected"),
    [
        ("-n 2 -s 0", 0, {}),
        ("-n 2 --topo Ring", 0, {"HIPRESS_TOPOLOGY": "ring"}),
        ("-n 2 --topo PS", 2, {"HIPRESS_TOPOLOGY": "ps"}),
        (
            "-n 2 -s 1 --topo tree --comprplan README.md",
            1,
            {"HIPRESS_TOPOLOGY": "tree", "HIPRESS_PLAN": str(ROOT / "README.md")},
        ),
        (
            "-n 2 --topo hierarchical",
            0,
            {"HIPRESS_TOPOLOGY": "hierarchical", "HIPRESS_DEVICES_PER_HOST": "2"},
        ),
    ],
)
def test_topologies_and_plans(line, servers, expected):
    names = ("DMLC_NUM_SERVER", "HIPRESS_TOPOLOGY", "HIPRESS_PLAN", "HIPRESS_DEVICES_PER_HOST")
    code = (
        "import json, os\n"
        f"print(json.dumps({{k: v for k, v in os.environ.items() if k in {names}}}))"
    )
    launch = run([*line.split(), *python(code)], cwd=ROOT)
    assert launch.process.returncode == 0, launch.err
    lines = [text.partition("] ")[2] for text in launch.out.splitlines()]
    assert len(lines) == 1 + servers + 2
    assert all(json.loads(text) == {"DMLC_NUM_SERVER": str(servers), **expected} for text in lines)


def test_options_after_the_command_are_the_commands():
    launch = run(["-n", "1", *python("import sys; print(sys.argv)"), "-n", "5", "--launcher", "x"])
    assert "[worker 0] ['-c', '-n', '5', '--launcher', 'x']" in launch.out


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ("", 2, "the following arguments are required: -n/--num-workers"),
        ("-n 0 true", 2, "argument -n/--num-workers: '0' is not a number from 1 up"),
        ("-n 2 -s two true", 2, "argument -s/--num-servers: 'two' is not a number from 0 up"),
        ("-n 2", 2, "hipress-launch: no command to run; for example: -n 2 python train.py"),
        (
            "-n 2 --launcher yarn true",
            2,
            "hipress-launch: --launcher yarn is not supported; use local, ssh, mpi, slurm",
        ),
        (
            "-n 2 --launcher sge true",
            2,
            "hipress-launch: --launcher sge is not supported; use local, ssh, mpi, slurm",
        ),
        (
            "-n 2 --launcher ssh true",
            2,
            "hipress-launch: --launcher ssh needs a host file (-H FILE)",
        ),
        (
            "-n 2 --launcher local -H hosts true",
            2,
            "hipress-launch: --launcher local starts everything here: leave out --hostfile, or use "
            "--launcher ssh",
        ),
        (
            "-n 2 --sync-dst-dir /tmp/x true",
            2,
            "hipress-launch: --sync-dst-dir needs a host file (-H FILE) to know where to copy to",
        ),
        (
            "-n 2 -H /no/such/file true",
            2,
            "hipress-launch: cannot read the host file /no/such/file: No such file or directory",
        ),
        (
            "-n 2 --env T_UNSET_HERE true",
            2,
            "hipress-launch: --env T_UNSET_HERE: that variable is not set here; set it or write "
            "--env T_UNSET_HERE=VALUE",
        ),
        (
            "-n 2 --env-worker FOO true",
            2,
            "hipress-launch: --env-worker takes KEY:VALUE or KEY=VALUE, not 'FOO'",
        ),
        (
            "-n 2 --env-server 1X:2 true",
            2,
            "hipress-launch: --env-server takes KEY:VALUE or KEY=VALUE, not '1X:2'",
        ),
        ("-n 2 -p 70000 true", 2, "hipress-launch: --port must be from 1 to 65535, not 70000"),
        (
            "-n 2 -i nosuch0 true",
            2,
            "hipress-launch: no address on network interface 'nosuch0' (link-local IPv6 addresses do not "
            "count); this machine has ",
        ),
        (
            "-n 2 --host-ip fe80::1%lo true",
            2,
            "hipress-launch: --host-ip: fe80::1%lo is a link-local IPv6 address, which has a different ",
        ),
        (
            "-n 2 --hipress bash train.sh",
            2,
            "hipress-launch: --hipress runs Python scripts: 'SCRIPT.py ...' or 'python SCRIPT.py ...', "
            "not 'bash train.sh'",
        ),
        (
            "-n 2 --hipress python -c pass",
            2,
            "hipress-launch: --hipress needs a script or a module (-m), not 'python -c ...'",
        ),
        (
            "-n 2 --hipress python -u",
            2,
            "hipress-launch: --hipress needs a script after 'python -u'",
        ),
        (
            "-n 2 --topo mesh true",
            2,
            "hipress-launch: --topo: there is no topology 'mesh'; there are ps, ",
        ),
        ("-n 2 -s 0 --topo PS true", 2, "hipress-launch: --topo PS needs servers: leave out -s 0"),
        (
            "-n 2 --comprplan /no/plan.txt true",
            2,
            "hipress-launch: --comprplan: there is no file /no/plan.txt",
        ),
        ("-n 2 --timeout -1 true", 2, "argument --timeout: '-1' is not a number of seconds"),
    ],
)
def test_errors_are_one_sentence(arguments, status, sentence):
    done = subprocess.run(
        [sys.executable, str(LAUNCH), *arguments.split()],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    assert done.returncode == status
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].removeprefix("launch.py: error: ").startswith(sentence)
    assert "Traceback" not in done.stderr


def test_busy_port():
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen(1)
        port = holder.getsockname()[1]
        launch = run(["-n", "1", "-p", str(port), "true"])
    assert launch.process.returncode == 2
    assert launch.err == (
        f"hipress-launch: the scheduler cannot listen on 127.0.0.1 port {port}: Address already "
        f"in use; leave out --port to have a free one chosen\n"
    )


def test_help_names_every_option():
    done = subprocess.run(
        [sys.executable, str(LAUNCH), "--help"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )
    assert done.returncode == 0
    for option in (
        "--num-workers",
        "--num-servers",
        "--hostfile",
        "--launcher",
        "--hipress",
        "--env-worker",
        "--env-server",
        "--sync-dst-dir",
        "--interface",
        "--port",
        "--timeout",
        "OMP_NUM_THREADS",
    ):
        assert option in done.stdout


def test_import_of_hipress_does_not_import_mxnet():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import hipress, hipress.launch.cli\n"
        "sys.exit(any(name.split('.')[0] == 'mxnet' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(ROOT / "python")]).returncode == 0


def test_wait_until_fails_in_the_end():
    with pytest.raises(AssertionError, match="waited 0.05 s for nothing"):
        wait_until(lambda: False, 0.05, "nothing")
