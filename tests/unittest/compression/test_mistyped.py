"""Mistyped input in every place: the commands answer with one sentence, and no traceback."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes import base_environment
from hipress.cli import main
from hipress.compression.compiler import cli as compll_cli
from hipress.launch import cli as launch_cli

SPECS = Path(compll_cli.__file__).parent / "specs"
PLAN = "plan --topology RING --nnodes 4"
STEP = "simulate --model vgg19 --nodes 4"


def test_typer_can_read_the_commands_annotations_on_python_3_9():
    names = main.COMMANDS.keys() - main.OWN_PARSERS.keys()
    modules = [importlib.import_module(f"hipress.cli.{name}") for name in names]
    for module in [*modules, compll_cli]:
        assert not hasattr(module, "annotations"), f"{module.__name__} postpones its annotations"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a folder with files that are no plan, profile, model, timeline or algorithm."""
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "text").write_text("hello world\n")
    (tmp_path / "other.json").write_text('{"a": 1}\n')
    (tmp_path / "deep").write_text("[" * 200_000)
    (tmp_path / "deep.json").write_text('{"traceEvents": ' + "[" * 200_000 + "]" * 200_000 + "}")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "hosts").write_text("node1\n")
    (tmp_path / "sizes").write_text("weight,1000000\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("codecs onebitt", "there is no compression type 'onebitt'; there are: 1bit, 2bit"),
        (f"{PLAN} --model vgg99", "the model must be one of vgg19"),
        (f"{PLAN} --model binary", "binary: this model is not a text file"),
        (f"{PLAN} --model folder", "the model must be one of vgg19"),
        (f"{PLAN} --input missing", "cannot read the list of gradients missing: No such file"),
        (f"{PLAN} --input text", "text, line 1"),
        (f"{PLAN} --model vgg19 --profile other.json", "other.json lacks what a profile must hold"),
        (f"{PLAN} --model vgg19 --output folder", "cannot write the plan folder: Is a directory"),
        (f"{PLAN} --model vgg19 --output no/plan", "cannot write the plan no/plan: No such file"),
        (f"{PLAN} --model vgg19 --ratio 2", "ratio must be above 0 and at most 1, got 2"),
        (f"{STEP} --topology rng", "there is no topology 'rng'; there are ps, colocated"),
        (f"{STEP} --topology ring --servers 2", "--servers goes with --topology ps, not ring"),
        (f"{STEP} --servers -1", "'--servers'"),
        (f"{STEP} --compute-ms -1", "the passes must take 0 seconds or more"),
        (f"{STEP} --compute-ms nan", "the passes must take 0 seconds or more"),
        ("simulate --model sizes --nodes 4 --compute-ms 5", "says no times of layers"),
        (f"{STEP} --bandwidth fast", "a rate is a number and one of bit"),
        (f"{STEP} --plan binary", "binary: this plan is not a text file"),
        (f"{STEP} --timeline no/trace", "cannot write the timeline no/trace: No such file"),
        ("report binary", "binary: this timeline is not a text file"),
        ("report missing", "cannot read the timeline missing: No such file"),
        ("report text", "text: this timeline is not JSON"),
        ("report other.json", "other.json is not a timeline that HIPRESS_TIMELINE wrote"),
        ("report list.json", "list.json: this timeline is a JSON list, not an object"),
        ("report deep", "deep: this timeline is JSON that nests too deeply"),
        ("report deep.json", "deep.json: this timeline is JSON that nests too deeply"),
        (f"{STEP} --profile deep.json", "deep.json: this profile is JSON that nests too deeply"),
        (f"{STEP} --profile list.json", "list.json: this profile is a JSON list, not an object"),
        (f"{STEP} --profile binary", "binary: this profile is not a text file"),
        (f"{STEP} --profile missing", "the profile must be 'sosp21' or a file"),
        (f"{PLAN} --model vgg19 --profile deep", "deep: this profile is JSON that nests too"),
        ("profile --type onebitt", 'unknown compression type "onebitt"; allowed: 1bit'),
        ("profile --type tbq:tau=1", 'type tbq has no parameter "tau"; its parameters: threshold'),
        ("profile --type tbq:threshold", "'threshold' is not param=value"),
        ("profile --type tbq:threads=2", "tbq has no parameter threads"),
    ],
)
def test_hipress_says_what_is_wrong(files, capsys, line, sentence):
    with pytest.raises(SystemExit) as end:
        main.main(line.split())
    assert end.value.code in (1, 2)
    written = capsys.readouterr()
    assert sentence in written.err, written
    lines = written.err.splitlines()
    assert len(lines) == 1 or "Usage" in lines[0], written  # a usage error shows the usage
    assert not [name for name in os.listdir() if "partial" in name]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("check missing.cll", "cannot read the algorithm missing.cll: No such file or directory"),
        ("check folder", "cannot read the algorithm folder: Is a directory"),
        ("check binary", "binary: this algorithm is not a text file"),
        ("binary -b", "binary: this algorithm is not a text file"),
        ("missing.cll -b", "cannot read the algorithm missing.cll: No such file or directory"),
        ("check text", "text:1:1: error: unexpected"),
        (f"check {SPECS / 'fp16.cll'}", "cannot use the cache of compiled code, "),
    ],
)
def test_compll_says_what_is_wrong(files, capsys, monkeypatch, line, sentence):
    monkeypatch.setenv("HIPRESS_CACHE", "other.json/cache")
    monkeypatch.setattr(sys, "argv", ["compll", *line.split()])
    with pytest.raises(SystemExit) as end:
        compll_cli.main()
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(sentence)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-n 2", "no command to run"),
        ("-n two true", "'two' is not a number from 1 up"),
        ("-n 2 -s -1 true", "'-1' is not a number from 0 up"),
        ("-n 2 --topo rng true", "there is no topology 'rng'; there are ps, colocated"),
        ("-n 2 --comprplan missing true", "--comprplan: there is no file missing"),
        ("-n 2 -H missing true", "cannot read the host file missing: No such file"),
        ("-n 2 -H binary true", "binary: this host file is not a text file"),
        ("-n 2 -H hosts --ssh no-such-ssh true", "need ssh, and 'no-such-ssh' is not on PATH here"),
        ("-n 2 --hipress missing.py", "there is no script missing.py here to run"),
        ("-n 2 --hipress python missing.py", "there is no script missing.py here to run"),
        ("-n 2 --host-ip no..such.host true", "can listen on no TCP port at no..such.host: "),
    ],
)
def test_the_launcher_says_what_is_wrong(files, capfd, line, sentence):
    try:
        status = launch_cli.main(line.split())
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert sentence in capfd.readouterr().err


@pytest.mark.parametrize("role", ["worker", "server"])
def test_a_missing_mxnet_is_said(role, tmp_path):
    (tmp_path / "mxnet.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'mxnet'\", name='mxnet')\n"
    )
    env = base_environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    script = (
        "import mxnet_hipress"
        if role == "worker"
        else "\n".join(["from mxnet_hipress._compat import import_mxnet", "import_mxnet()"])
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.splitlines()[-1].endswith("pip install 'hipress[mxnet]'"), done.stderr


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_a_missing_framework_is_said(framework, tmp_path):
    (tmp_path / f"{framework}.py").write_text(
        f"raise ModuleNotFoundError('No module named {framework}', name='{framework}')\n"
    )
    env = base_environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", f"import hipress.{framework}"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: hipress.{framework} needs "), done.stderr
    assert f"pip install 'hipress[{framework}]'" in last


@pytest.mark.parametrize("listed", ["missing.cll", "text"])
def test_a_bad_algorithm_in_the_environment_is_named(files, listed):
    done = subprocess.run(
        [sys.executable, "-m", "hipress", "codecs"],
        env=base_environment({"HIPRESS_CODECS": listed}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"hipress: HIPRESS_CODECS names {listed}: "), done
    assert "Traceback" not in done.stderr, done


@pytest.mark.slow
def test_a_worker_whose_scheduler_is_not_there_says_so_before_it_gives_up():
    env = base_environment(
        {
            "DMLC_ROLE": "worker",
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": "9",
            "DMLC_NUM_WORKER": "1",
            "DMLC_NUM_SERVER": "0",
            "HIPRESS_START_TIMEOUT": "7",
            "HIPRESS_SECRET": "0" * 32,
        }
    )
    done = subprocess.run(
        [sys.executable, "-c", "from hipress.runtime.node import Node; Node()"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    sentence = "connect to the scheduler at 127.0.0.1:9: nothing listens there"
    assert f"warning: still tries to {sentence}\n" in done.stderr
    assert f"cannot {sentence} (tried for " in done.stderr
