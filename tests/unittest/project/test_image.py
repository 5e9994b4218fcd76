"""Container images: they are built, and their containers run the jobs of compose.yaml.

`make test-image` adds buildah and debootstrap and runs this; it needs root. No container registry
is used: debootstrap makes the base. `docker compose` itself is not run: the containers are
buildah's, in separate network namespaces, with the commands, the volume and the names of
compose.yaml. The checks of Dockerfile and compose.yaml that need no image run everywhere.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import ROOT, netns

yaml = pytest.importorskip("yaml")

needs_image = pytest.mark.skipif(
    os.environ.get("HIPRESS_TEST_IMAGE") != "1", reason="make test-image builds the images"
)
pytestmark = pytest.mark.timeout(1500)
MIRROR = "http://deb.debian.org/debian"
TARGETS = ("pytorch", "mxnet")
USER = 1000
"""User ID in the images."""
SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]


class Builder:
    """A buildah command with images and containers in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.command = [
            "buildah",
            "--root",
            str(folder / "root"),
            "--runroot",
            str(folder / "run"),
            "--storage-driver",
            "vfs",
        ]

    def __call__(self, *arguments: str, timeout: int = 900) -> str:
        done = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout.strip()


def package_index(folder: Path) -> list[str]:
    """Return options of `buildah bud` that give builds the package index of this machine's pip."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout
    settings = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    settings.pop("config-file", None)
    # The PyTorch that the other tests use.
    constraints = folder / "constraints.txt"
    constraints.write_text("torch==2.13.0\n")
    settings["constraint"] = f"{settings.get('constraint', '')} {constraints}"
    config = folder / "pip.conf"
    lines = (f"{name} = {' '.join(value.split())}\n" for name, value in settings.items())
    config.write_text("[global]\n" + "".join(lines))
    mounts = {f"{config}:/etc/pip.conf:ro"}
    for word in " ".join(settings.values()).split():
        path = Path(word[len("file://") :] if word.startswith("file://") else word)
        if path.is_absolute() and path.exists():
            if word.startswith("file://"):
                path = path.parent  # the index refers to files next to it
            mounts.add(f"{path}:{path}:ro")
    options = [word for mount in sorted(mounts) for word in ("--volume", mount)]
    if "find-links" in settings or "extra-index-url" in settings:
        options += ["--build-arg", "TORCH_INDEX="]
    return options


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    missing = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root, buildah and debootstrap; missing: {missing}")
    folder = tmp_path_factory.mktemp("image")
    build = Builder(folder)
    subprocess.run(
        [
            "debootstrap",
            "--variant=minbase",
            "--include=ca-certificates",
            "bookworm",
            str(folder / "base"),
            os.environ.get("HIPRESS_DEBIAN_MIRROR", MIRROR),
        ],
        check=True,
        timeout=600,
        stdout=subprocess.DEVNULL,
    )
    try:
        container = build("from", "scratch")
        build("add", container, str(folder / "base"), "/")
        build("commit", container, "base")
        build("rm", container)
        shutil.rmtree(folder / "base")
        for target in TARGETS:
            build(
                "bud",
                "--isolation",
                "chroot",
                "--layers=false",
                "--build-arg",
                "BASE=localhost/base",
                "--target",
                target,
                *package_index(folder),
                "--tag",
                f"hipress:{target}",
                str(ROOT),
            )
        yield build
    finally:
        subprocess.run([*build.command, "rm", "--all"], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


class Containers:
    """Containers of compose.yaml's services, each in a separate network namespace."""

    def __init__(self, builder: Builder, names: list[str], folder: Path) -> None:
        self._builder, self._names, self._folder = builder, names, folder
        self._network = netns.ShapedNetwork(len(names), rate="1gbit")
        self._processes: list[subprocess.Popen] = []

    def __enter__(self) -> Containers:
        self._network.__enter__()
        return self

    def start(self, name: str, command: list[str], *options: str) -> subprocess.Popen:
        """Start a service with a command. Its output is in a file of its name."""
        hosts = [f"--add-host={n}:{self._network.address(i)}" for i, n in enumerate(self._names)]
        image = SERVICES[name]["image"]
        container = self._builder("from", *hosts, f"localhost/{image}")
        words = [
            *self._builder.command,
            "run",
            "--isolation",
            "chroot",
            "--workingdir",
            "/hipress",
            "--hostname",
            name,
            *options,
            container,
            "--",
            *command,
        ]
        log = open(self._folder / f"{name}.log", "w")
        number = self._names.index(name)
        process = self._network.popen(number, words, stdout=log, stderr=subprocess.STDOUT)
        self._processes.append(process)
        return process

    def wait(self, process: subprocess.Popen) -> dict[str, str]:
        """Wait for a container that must end with status 0. Return the output of all."""
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        logs = {path.stem: path.read_text()[-3000:] for path in self._folder.glob("*.log")}
        assert process.poll() == 0, logs
        return logs

    def __exit__(self, *unused: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(20)
        self._network.__exit__(*unused)


def test_compose_has_a_two_host_job_of_pytorch_and_a_cluster_of_mxnet():
    profiles = {name: service["profiles"] for name, service in SERVICES.items()}
    assert [name for name in profiles if profiles[name] == ["pytorch"]] == ["pytorch1", "pytorch2"]
    assert sum(profile == ["mxnet"] for profile in profiles.values()) == 4
    stages = re.findall(r"^FROM \S+ AS (\w+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for service in SERVICES.values():
        (target,) = service["profiles"]
        assert target in stages and service["build"] == {"context": ".", "target": target}
        assert service["image"] == f"hipress:{target}"


def test_commands_of_compose_run_examples_that_exist():
    commands = " ".join(service.get("command", "") for service in SERVICES.values())
    files = re.findall(r"examples/\S+", commands)
    assert len(set(files)) == 2 and all((ROOT / file).is_file() for file in files)


@needs_image
@pytest.mark.parametrize("target", TARGETS)
def test_image_has_the_package_and_runs_as_a_user(builder, target: str):
    container = builder("from", f"localhost/hipress:{target}")
    framework = {"pytorch": "torch", "mxnet": "mxnet"}[target]
    run = ("run", "--isolation", "chroot", container, "--")
    code = f"import os, {framework}; print(os.getuid(), {framework}.__version__)"
    user, version = builder(*run, "python", "-c", code).splitlines()[-1].split()
    assert int(user) == USER
    found = builder(*run, "hipress", "doctor")
    assert re.search(rf"{framework} +{re.escape(version)}$", found, re.MULTILINE), found
    # An image has no host key, which all who have the image would share.
    assert not builder(*run, "sh", "-c", "ls /etc/ssh/ssh_host_* 2>/dev/null || true")
    builder("rm", container)


@needs_image
def test_pytorch_job_of_compose_trains_on_two_hosts(builder, tmp_path: Path):
    names = ["pytorch1", "pytorch2"]
    with Containers(builder, names, tmp_path) as containers:
        # A container of Docker finds its own address by its host name.
        options = ["--env", "GLOO_SOCKET_IFNAME=eth0", "--env", "OMP_NUM_THREADS=1"]
        started = [containers.start(n, SERVICES[n]["command"].split(), *options) for n in names]
        for process in started:
            logs = containers.wait(process)
    assert re.search(r"test_accuracy", logs["pytorch1"] + logs["pytorch2"]), logs


@needs_image
def test_mxnet_cluster_of_compose_trains_on_three_hosts(builder, tmp_path: Path):
    hosts = SERVICES["mxnet-launcher"]["depends_on"]
    names = [*hosts, "mxnet-launcher"]
    keys = tmp_path / "keys"
    keys.mkdir()
    os.chown(keys, USER, USER)
    options = ["--volume", f"{keys}:/keys"]
    with Containers(builder, names, tmp_path) as containers:
        for name in hosts:
            containers.start(name, ["hipress-container", "node"], *options)
        command = SERVICES["mxnet-launcher"]["command"].split()
        launcher = containers.start(names[-1], ["hipress-container", *command], *options)
        logs = containers.wait(launcher)
    assert re.search(r"accuracy", logs["mxnet-launcher"]), logs
