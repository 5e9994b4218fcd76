"""tools/launch.py on this machine: statuses, failures, what stays behind, output, options."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch_helpers import LAUNCH, ROOT, STUBBORN, launched, marked, python, run, wait_until

REPORT = """
import json, os
keys = ("DMLC_", "HIPRESS_SECRET", "HIPRESS_LAUNCHED", "OMP_", "T_", "PYTHONUNBUFFERED")
print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(keys)}))
"""


def only(role: str, index: int, then: str, otherwise: str = "time.sleep(60)") -> list[str]:
    """A command in which one process does something else than the others."""
    name = "DMLC_ROLE" if role == "scheduler" else f"DMLC_{role.upper()}_ID"
    value = role if role == "scheduler" else str(index)
    return python(f"import os, signal, sys, time\n"
                  f"if os.environ.get('{name}') == '{value}':\n    {then}\nelse:\n    {otherwise}")


def reports(launch) -> dict[str, dict[str, str]]:
    """Environment of each process, by its prefix, from a job that ran REPORT."""
    found = {}
    for line in launch.out.splitlines():
        match = re.fullmatch(r"\[([a-z]+(?: \d+)?)\] (\{.*\})", line)
        assert match, line
        found[match[1]] = json.loads(match[2])
    return found


# Exit statuses and failures


def test_success_is_zero_and_silent():
    launch = run(["-n", "2", "-s", "1", *python("print('done')")])
    assert launch.process.returncode == 0
    assert sorted(launch.out.splitlines()) == [
        "[scheduler] done", "[server 0] done", "[worker 0] done", "[worker 1] done"]
    assert launch.err == ""


@pytest.mark.parametrize(("role", "index", "then", "status", "sentence"), [
    ("worker", 1, "sys.exit(3)", 3, "worker 1 exited with status 3"),
    ("worker", 0, "os.kill(os.getpid(), signal.SIGKILL)", 137,
     "worker 0 was killed by SIGKILL (signal 9)"),
    ("server", 1, "os.kill(os.getpid(), signal.SIGSEGV)", 139,
     "server 1 was killed by SIGSEGV (signal 11)"),
    ("scheduler", 0, "sys.exit(7)", 7, "scheduler exited with status 7"),
])
def test_a_death_stops_the_job_and_is_named(role, index, then, status, sentence):
    begin = time.monotonic()
    launch = run(["-n", "2", *only(role, index, then)])
    assert launch.process.returncode == status
    assert len(launch.err.splitlines()) == 1
    assert launch.err.startswith(f"hipress-launch: {sentence} after ")
    assert launch.err.endswith("; stopping the other 4 processes\n")
    assert time.monotonic() - begin < 15.0


def test_the_killed_process_is_named_not_those_that_fail_because_of_it():
    # Survivors notice within milliseconds and exit with errors of their own.
    launch = run(["-n", "3", "-s", "1", *only(
        "server", 0, "time.sleep(0.4); os.kill(os.getpid(), signal.SIGKILL)",
        "time.sleep(0.42); sys.exit('lost server 0')")])
    assert launch.process.returncode == 137
    assert "hipress-launch: server 0 was killed by SIGKILL" in launch.err
    assert launch.err.count("lost server 0") == 4  # survivors had the time to say so


def test_a_killed_child_of_a_shell_is_seen_through_its_status():
    launch = run(["-n", "1", "sh", "-c",
                  '[ $DMLC_ROLE = worker ] || exec sleep 60; sh -c "kill -9 \\$\\$"'])
    assert launch.process.returncode == 137
    assert "worker 0 exited with status 137 (128 + 9: SIGKILL)" in launch.err


def test_unknown_command_and_directory_without_permission():
    launch = run(["-n", "1", "no-such-command-anywhere"])
    assert launch.process.returncode == 127
    assert "cannot run 'no-such-command-anywhere': No such file or directory" in launch.err


def test_servers_that_outlive_the_workers_are_stopped(monkeypatch):
    code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
            "from hipress.launcher import cli, runner\n"
            "runner.DRAIN = 0.5\n"
            "sys.exit(cli.main(sys.argv[2:]))")
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "python"), "-n", "1",
         *only("worker", 0, "print('trained')")],
        capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert "server 0 still ran 0.5 s after the last worker; stopping" in done.stderr


def test_timeout():
    launch = run(["-n", "1", "--timeout", "0.6", *python("import time; time.sleep(60)")])
    assert launch.process.returncode == 124
    assert launch.err == "hipress-launch: the job has not ended within 0.6 s; stopping it\n"


# Nothing stays behind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_nothing(number):
    with launched(["-n", "2", "-s", "1", "--grace", "0.5", *python(STUBBORN)]) as launch:
        launch.read_lines(4, "ready")
        # Supervisor, command and two daemons each.
        wait_until(lambda: len(launch.processes()) == 4 * 4, 5.0, "all daemons")
        launch.process.send_signal(number)
        assert launch.finish(20.0) == 128 + number
        launch.gone(0.2)
    assert f"hipress-launch: {number.name}; stopping the job" in launch.err


def test_second_interrupt_does_not_wait():
    with launched(["-n", "1", "--grace", "60", *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        launch.process.send_signal(signal.SIGINT)
        assert launch.finish(10.0) == 130
        launch.gone(0.2)


def test_processes_get_sigterm_and_time_to_clean_up():
    code = ("import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('cleaned up'), sys.exit(0)))\n"
            "print('ready', flush=True)\ntime.sleep(60)")
    with launched(["-n", "1", *python(code)]) as launch:
        launch.read_lines(3, "ready")
        launch.process.send_signal(signal.SIGTERM)
        assert launch.finish(10.0) == 143
    assert launch.out.count("cleaned up") == 3


def test_killed_launcher_leaves_nothing():
    with launched(["-n", "2", "-s", "1", *python(STUBBORN)]) as launch:
        launch.read_lines(4, "ready")
        launch.process.kill()
        launch.gone(5.0)


def test_launcher_killed_while_starting_leaves_nothing():
    for delay in (0.05, 0.1, 0.15, 0.2):
        with launched(["-n", "4", *python(STUBBORN)]) as launch:
            time.sleep(delay)
            launch.process.kill()
            launch.gone(5.0)


def test_killed_supervisor_ends_the_job():
    with launched(["-n", "1", "--grace", "0.5", *python(STUBBORN)]) as launch:
        launch.read_lines(3, "ready")
        supervisors = [pid for pid in launch.processes()
                       if b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(supervisors) == 3
        os.kill(supervisors[0], signal.SIGKILL)
        assert launch.finish(20.0) == 137
        launch.gone(0.2)


def test_daemons_of_a_worker_that_ended_well_are_ended():
    launch = run(["-n", "1", "sh", "-c", "setsid sleep 300 & exit 0"])
    assert launch.process.returncode == 0


def test_reader_that_goes_away_ends_the_job():
    with launched(["-n", "1", *python("while True: print('x' * 1000)")]) as launch:
        launch.process.stdout.read(1000)
        launch.process.stdout.close()
        launch.process.stdout = None
        assert launch.finish(20.0) == 128 + signal.SIGPIPE
        launch.gone(0.2)


# Output


def test_lines_are_whole_and_prefixed():
    code = ("import os, sys\n"
            "for i in range(1500):\n"
            "    text = f'{i}:' + 'abcdefgh' * (i % 40)\n"
            "    os.write(1, text[:7].encode()); os.write(1, (text[7:] + '\\n').encode())\n"
            "os.write(1, b'the end')")
    launch = run(["-n", "3", "-s", "1", *python(code)])
    seen = {}
    for line in launch.out.splitlines():
        match = re.fullmatch(r"\[(scheduler|server 0|worker [012])\] (.*)", line)
        assert match, line
        seen.setdefault(match[1], []).append(match[2])
    expected = [f"{i}:" + "abcdefgh" * (i % 40) for i in range(1500)] + ["the end"]
    assert len(seen) == 5
    assert all(lines == expected for lines in seen.values())


def test_streams_stay_apart_and_bytes_pass_unchanged():
    code = "import os; os.write(1, b'out \\xff\\n'); os.write(2, b'err \\x1b[1m\\n')"
    with launched(["-n", "1", "-s", "1", *python(code)]) as launch:
        out, err = launch.process.communicate(timeout=30)
    assert b"[worker 0] out \xff\n" in out and b"err" not in out
    assert b"[worker 0] err \x1b[1m\n" in err and b"out" not in err


def test_output_comes_at_once():
    with launched(["-n", "1", *only("worker", 0, "print('now'); time.sleep(30)")]) as launch:
        begin = time.monotonic()
        launch.read_lines(1, "[worker 0] now")
        assert time.monotonic() - begin < 10.0
        assert launch.process.poll() is None


@pytest.mark.parametrize(("environ", "coloured"), [({"TERM": "xterm"}, True),
                                                   ({"TERM": "dumb"}, False),
                                                   ({"TERM": "xterm", "NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal_only(environ, coloured):
    pytest.importorskip("rich")
    leader, follower = pty.openpty()
    try:
        with launched(["-n", "1", "-s", "1", *python("print('hello')")], env=environ,
                      stdout=follower) as launch:
            assert launch.finish() == 0
        os.close(follower)
        follower = -1
        output = b""
        try:
            while data := os.read(leader, 4096):
                output += data
        except OSError:  # a terminal's way to say that nobody writes any more
            pass
    finally:
        os.close(leader)
        if follower >= 0:
            os.close(follower)
    assert output.count(b"hello") == 3
    assert (b"\x1b[" in output) == coloured
    assert re.search(rb"\[worker 0\](\x1b\[0m)? hello", output)


# Environment and options


def test_environment_of_each_role():
    launch = run(["-n", "2", "-s", "1", "--env", "T_ALL=a=b:c", "--env", "T_HERE",
                  "--env-worker", "T_WORKER:w:x", "--env-server", "T_SERVER=s",
                  "--env-server", "T_ALL:server", *python(REPORT)],
                 env={"T_HERE": "value from here", "DMLC_ROLE": "server"})
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
    from hipress.launcher.job import free_port

    port = free_port("127.0.0.1")
    first, second = (reports(run(["-n", "1", "-p", str(port), "-i", "lo", *python(REPORT)]))
                     for _ in range(2))
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
            f"print('{module}', sys.flags.optimize, os.environ['HIPRESS_LAUNCHED'], sys.argv[1:])")
    # The fake package must come before the source tree's.
    code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
            "from hipress.launcher import cli, job\n"
            "job.with_source_tree = lambda env: env\n"
            "sys.exit(cli.main(sys.argv[2:]))")
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "python"), "-n", "1", "--hipress",
         "--env", f"PYTHONPATH={tmp_path}", "--",
         sys.executable, "-O", "train.py", "--lr", "0.1"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[scheduler] boot 1 1 []", "[server 0] boot 1 1 []",
        "[worker 0] __main__ 1 1 ['train.py', '--lr', '0.1']"]


@pytest.mark.parametrize(("command", "expected"), [
    ("train.py --x 1", (["PY"], ["train.py", "--x", "1"])),
    ("python train.py", (["python"], ["train.py"])),
    ("/usr/bin/python3.11 -u -W ignore train.py -c 3",
     (["/usr/bin/python3.11", "-u", "-W", "ignore"], ["train.py", "-c", "3"])),
    ("python3 -m pkg.train --x", (["python3"], ["-m", "pkg.train", "--x"])),
])
def test_split_script(command, expected):
    from hipress.launcher.job import split_script

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


@pytest.mark.parametrize(("line", "servers", "expected"), [
    ("-n 2 -s 0", 0, {}),
    ("-n 2 --topo Ring", 0, {"HIPRESS_TOPOLOGY": "ring"}),
    ("-n 2 --topo PS", 2, {"HIPRESS_TOPOLOGY": "ps"}),
    ("-n 2 -s 1 --topo tree --comprplan README.md", 1,
     {"HIPRESS_TOPOLOGY": "tree", "HIPRESS_PLAN": str(ROOT / "README.md")}),
    ("-n 2 --topo hierarchical", 0,
     {"HIPRESS_TOPOLOGY": "hierarchical", "HIPRESS_DEVICES_PER_HOST": "2"}),
])
def test_topologies_and_plans(line, servers, expected):
    names = ("DMLC_NUM_SERVER", "HIPRESS_TOPOLOGY", "HIPRESS_PLAN", "HIPRESS_DEVICES_PER_HOST")
    code = ("import json, os\n"
            f"print(json.dumps({{k: v for k, v in os.environ.items() if k in {names}}}))")
    launch = run([*line.split(), *python(code)], cwd=ROOT)
    assert launch.process.returncode == 0, launch.err
    lines = [text.partition("] ")[2] for text in launch.out.splitlines()]
    assert len(lines) == 1 + servers + 2
    assert all(json.loads(text) == {"DMLC_NUM_SERVER": str(servers), **expected} for text in lines)


def test_options_after_the_command_are_the_commands():
    launch = run(["-n", "1", *python("import sys; print(sys.argv)"), "-n", "5", "--launcher", "x"])
    assert "[worker 0] ['-c', '-n', '5', '--launcher', 'x']" in launch.out


@pytest.mark.parametrize(("arguments", "status", "sentence"), [
    ("", 2, "the following arguments are required: -n/--num-workers"),
    ("-n 0 true", 2, "argument -n/--num-workers: '0' is not a number from 1 up"),
    ("-n 2 -s two true", 2, "argument -s/--num-servers: 'two' is not a number from 1 up"),
    ("-n 2", 2, "hipress-launch: no command to run; for example: launch.py -n 2 python train.py"),
    ("-n 2 --launcher yarn true", 2,
     "hipress-launch: --launcher yarn is not supported; use local, ssh, mpi, slurm"),
    ("-n 2 --launcher sge true", 2,
     "hipress-launch: --launcher sge is not supported; use local, ssh, mpi, slurm"),
    ("-n 2 --launcher ssh true", 2, "hipress-launch: --launcher ssh needs a host file (-H FILE)"),
    ("-n 2 --launcher local -H hosts true", 2,
     "hipress-launch: --launcher local starts everything here: leave out --hostfile, or use "
     "--launcher ssh"),
    ("-n 2 --sync-dst-dir /tmp/x true", 2,
     "hipress-launch: --sync-dst-dir needs a host file (-H FILE) to know where to copy to"),
    ("-n 2 -H /no/such/file true", 2,
     "hipress-launch: cannot read the host file '/no/such/file': No such file or directory"),
    ("-n 2 --env T_UNSET_HERE true", 2,
     "hipress-launch: --env T_UNSET_HERE: that variable is not set here; set it or write "
     "--env T_UNSET_HERE=VALUE"),
    ("-n 2 --env-worker FOO true", 2,
     "hipress-launch: --env-worker takes KEY:VALUE or KEY=VALUE, not 'FOO'"),
    ("-n 2 --env-server 1X:2 true", 2,
     "hipress-launch: --env-server takes KEY:VALUE or KEY=VALUE, not '1X:2'"),
    ("-n 2 -p 70000 true", 2, "hipress-launch: --port must be from 1 to 65535, not 70000"),
    ("-n 2 -i nosuch0 true", 2,
     "hipress-launch: no IPv4 address on network interface 'nosuch0'; this machine has "),
    ("-n 2 --hipress bash train.sh", 2,
     "hipress-launch: --hipress runs Python scripts: 'SCRIPT.py ...' or 'python SCRIPT.py ...', "
     "not 'bash train.sh'"),
    ("-n 2 --hipress python -c pass", 2,
     "hipress-launch: --hipress needs a script or a module (-m), not 'python -c ...'"),
    ("-n 2 --hipress python -u", 2, "hipress-launch: --hipress needs a script after 'python -u'"),
    ("-n 2 --topo mesh true", 2,
     "hipress-launch: --topo: there is no topology 'mesh'; there are ps, "),
    ("-n 2 -s 0 --topo PS true", 2, "hipress-launch: --topo PS needs servers: leave out -s 0"),
    ("-n 2 --comprplan /no/plan.txt true", 2,
     "hipress-launch: --comprplan: there is no file /no/plan.txt"),
    ("-n 2 --timeout -1 true", 2, "argument --timeout: '-1' is not a number of seconds"),
])
def test_errors_are_one_sentence(arguments, status, sentence):
    done = subprocess.run([sys.executable, str(LAUNCH), *arguments.split()], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=30)
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
        f"in use; leave out --port to have a free one chosen\n")


def test_help_names_every_option():
    done = subprocess.run([sys.executable, str(LAUNCH), "--help"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 0
    for option in ("--num-workers", "--num-servers", "--hostfile", "--launcher", "--hipress",
                   "--env-worker", "--env-server", "--sync-dst-dir", "--interface", "--port",
                   "--timeout", "OMP_NUM_THREADS"):
        assert option in done.stdout


def test_import_of_hipress_does_not_import_mxnet():
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import hipress, hipress.launcher.cli\n"
            "sys.exit(any(name.split('.')[0] == 'mxnet' for name in sys.modules))")
    assert subprocess.run([sys.executable, "-c", code, str(ROOT / "python")]).returncode == 0


def test_wait_until_fails_in_the_end():
    with pytest.raises(AssertionError, match="waited 0.05 s for nothing"):
        wait_until(lambda: False, 0.05, "nothing")
