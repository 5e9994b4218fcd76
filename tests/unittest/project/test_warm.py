"""Programs that start warm, which behave as if they had started cold."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from harness.processes import Processes, base_environment
from harness.warm import WarmProcess
from scripts import SCRIPTS

pytest.importorskip("torch")

PROGRAM = (SCRIPTS / "warm.py").read_text()


def run(job, command, warm=True, **env):
    """Run a program that can import the contents of the job's folder ``more``."""
    more = job.path / "more"
    more.mkdir(exist_ok=True)
    (more / "helper_of_a_test.py").touch()
    base = base_environment()
    paths = os.pathsep.join([str(more), base["PYTHONPATH"]])
    job.start("it", command, {**base, "PYTHONPATH": paths, **env})
    assert isinstance(job.processes["it"], WarmProcess) == warm
    (result,) = job.wait(120)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["script", "text", "module"])
def test_it_has_its_own_arguments_environment_folder_and_imports(kind):
    with Processes() as job:
        script = job.path / "program.py"
        script.write_text(PROGRAM)
        how = {
            "script": [str(script)],
            "text": ["-c", PROGRAM],
            "module": ["-m", "program", "program.py"],  # by its argument it is known to be one
        }[kind]
        result = run(job, [sys.executable, *how, "1", "two"], OF_ITS_OWN="yes")
        assert result.returncode == 0, result.output
        file = {"script": str(script), "text": "None", "module": str(script)}[kind]
        path = {"script": str(job.path), "text": "", "module": str(job.path)}[kind]
        assert result.output.splitlines() == [
            f"['1', 'two'] __main__ {file}",
            f"yes {job.path.resolve()}",
            f"True {path}",
        ]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("ending", "status", "output"),
    [
        ("raise ValueError('a reason')", 1, "ValueError: a reason"),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('a sentence')", 1, "a sentence"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import atexit; atexit.register(print, 'at its end')", 0, "at its end"),
    ],
)
def test_it_ends_as_others_do(ending, status, output):
    with Processes() as job:
        program = f"import os, signal, sys\nimport torch\nimport helper_of_a_test\n{ending}"
        result = run(job, [sys.executable, "-c", program])
        assert result.returncode == status and output in result.output


def test_it_is_killed_with_its_job():
    with Processes() as job:
        program = "import time\nimport torch\nprint('here')\ntime.sleep(60)"
        job.start("it", [sys.executable, "-c", program], base_environment())
        job.wait_for("it", "here")
        pid = job.processes["it"].pid
    assert job.processes["it"].returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "env",
    [
        {"DMLC_ROLE": "worker"},
        {"DMLC_ROLE": "server", "HIPRESS_LAUNCHED": "1"},
        {"HIPRESS_DEBUG_DIR": "/nowhere"},
    ],
)
def test_where_it_matters_it_starts_cold(env):
    with Processes() as job:
        program = "import os\nimport torch\nos._exit(5)"
        assert run(job, [sys.executable, "-c", program], warm=False, **env).returncode == 5
