"""The container image is built, and a cluster of its containers runs what compose.yaml says.

`make test-image` adds buildah and debootstrap and runs this; it needs root. No registry is asked:
debootstrap makes the base. `docker compose` itself is not run: the containers are buildah's, in
network namespaces of their own, with the commands, the volume and the names of compose.yaml.
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

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("HIPRESS_TEST_IMAGE") != "1", reason="make test-image builds the image"
    ),
    pytest.mark.timeout(1500),
]
MIRROR = "http://deb.debian.org/debian"


class Builder:
    """buildah, with images and containers in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.command = [
            "buildah", "--root", str(folder / "root"), "--runroot", str(folder / "run"),
            "--storage-driver", "vfs",
        ]  # fmt: skip

    def __call__(self, *arguments: str, timeout: int = 900) -> str:
        done = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout.strip()


def package_index(folder: Path) -> list[str]:
    """What gives builds the same package index as this machine's pip has."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True
    ).stdout
    settings = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    settings.pop("config-file", None)
    config = folder / "pip.conf"
    lines = (f"{name} = {' '.join(value.split())}\n" for name, value in settings.items())
    config.write_text("[global]\n" + "".join(lines))
    mounts = {f"{config}:/etc/pip.conf:ro"}
    for word in " ".join(settings.values()).split():
        path = Path(word[len("file://") :] if word.startswith("file://") else word)
        if path.is_absolute() and path.exists():
            if word.startswith("file://"):
                path = path.parent  # the files lie beside the index
            mounts.add(f"{path}:{path}:ro")
    return [word for mount in sorted(mounts) for word in ("--volume", mount)]


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    missing = [tool for tool in ("buildah", "debootstrap") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root, buildah and debootstrap; missing: {missing}")
    folder = tmp_path_factory.mktemp("image")
    build = Builder(folder)
    subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm",
         str(folder / "base"), os.environ.get("HIPRESS_DEBIAN_MIRROR", MIRROR)],
        check=True, timeout=600, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        container = build("from", "scratch")
        build("add", container, str(folder / "base"), "/")
        build("commit", container, "base")
        build("rm", container)
        shutil.rmtree(folder / "base")
        build(
            "bud", "--isolation", "chroot", "--layers=false", "--build-arg", "BASE=localhost/base",
            *package_index(folder), "--tag", "hipress", str(ROOT),
        )  # fmt: skip
        yield build
    finally:
        subprocess.run([*build.command, "rm", "--all"], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def compose() -> dict:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_image_has_the_package(builder):
    container = builder("from", "localhost/hipress")
    code = "import hipress, mxnet_hipress, mxnet; print(mxnet.__version__)"
    run = ("run", "--isolation", "chroot", container, "--")
    assert builder(*run, "/opt/hipress/bin/python", "-c", code).endswith("1.9.1")
    assert "none" in builder(*run, "/opt/hipress/bin/hipress", "codecs")
    # What a registry would give away: no host has the same key as another image's.
    assert not builder(*run, "sh", "-c", "ls /etc/ssh/ssh_host_* 2>/dev/null || true")
    builder("rm", container)


def test_a_cluster_of_containers_trains_as_compose_says(builder, tmp_path):
    services = compose()["services"]
    nodes = [name for name in services if name != "launcher"]
    assert services["launcher"]["depends_on"] == nodes and len(nodes) == 3
    keys = tmp_path / "keys"
    keys.mkdir()
    running = []
    with netns.ShapedNetwork(len(nodes) + 1, rate="1gbit") as network:
        names = [*nodes, "launcher"]
        hosts = [f"--add-host={name}:{network.address(i)}" for i, name in enumerate(names)]

        def start(number: int, arguments: list[str]) -> subprocess.Popen:
            container = builder("from", *hosts, "localhost/hipress")
            command = [
                *builder.command, "run", "--isolation", "chroot", "--workingdir", "/hipress",
                "--volume", f"{keys}:/keys", container, "--",
                "hipress-container", *arguments,
            ]  # fmt: skip
            log = open(tmp_path / f"{names[number]}.log", "w")
            process = network.popen(number, command, stdout=log, stderr=subprocess.STDOUT)
            running.append(process)
            return process

        try:
            for number in range(len(nodes)):
                start(number, ["node"])
            words = services["launcher"]["command"].split()
            launcher = start(len(nodes), words)
            deadline = time.monotonic() + 300
            while launcher.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
            logs = {path.name: path.read_text()[-3000:] for path in tmp_path.glob("*.log")}
            assert launcher.poll() == 0, logs
            assert re.search(r"accuracy", logs["launcher.log"]), logs
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(20)
