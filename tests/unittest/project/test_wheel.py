"""The wheel of `make wheel`, installed without the source tree, and the sdist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def run(*command: str | Path, site: Path, timeout: float = 100) -> str:
    """Return the output of a command that finds the installed package first."""
    env = {**os.environ, "PYTHONPATH": str(site), "HIPRESS_LIBRARY": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=env, cwd=site, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built wheel."""
    for module in ("scikit_build_core", "auditwheel"):
        pytest.importorskip(module)
    if not (ROOT / "build" / "CMakeCache.txt").exists() or not (ROOT / ".venv").exists():
        pytest.skip("nothing is built: run make")
    wheels = tmp_path_factory.mktemp("wheels")
    environment = {**os.environ, "WHEELS": str(wheels)}
    # `timeout` also ends what the script has started.
    command = ["timeout", "-k", "5", "400", ROOT / "tools" / "setup.sh", "wheel"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = wheels.iterdir()
    assert "py3-none-manylinux" in wheel.name
    return wheel


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the wheel is installed in."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", site, wheel], timeout=60, check=True)
    return site


def test_every_file_of_the_package_is_in_it(site: Path):
    """The installed wheel contains every file of the package's source tree.

    Cost: The first test of this module builds the wheel with the C++ library, and installs it.
    """
    source = ROOT / "python"
    files = [
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(files) > 150
    assert not [str(path) for path in files if not (site / path).exists()]


def test_the_installed_package_is_the_one_that_is_used(site: Path):
    code = (
        "import hipress, hipress.native.library as l; print(hipress.__file__); print(l.lib._name)"
    )
    found = run(sys.executable, "-c", code, site=site).split()
    assert found == [str(site / "hipress" / name) for name in ("__init__.py", "libhipress.so")]
    assert "onebit" in run(site / "bin" / "hipress", "codecs", site=site)


def test_library_needs_only_the_c_library_and_libgcc(site: Path):
    library = site / "hipress" / "libhipress.so"
    out = run("readelf", "--dynamic", "--wide", library, site=site)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", out))
    system = r"(libc|libm|libpthread|libdl|libgcc_s|ld-linux.*)\.so\.\d"
    assert not [name for name in needed if not re.fullmatch(system, name)], needed
    # With a visible symbol, another OpenSSL or C++ runtime of the process could replace HiPress's.
    out = run("nm", "--dynamic", "--defined-only", "--format=posix", library, site=site)
    names = {line.split()[0] for line in out.splitlines()}
    assert "HipressVersion" in names
    assert not [name for name in names if not name.startswith(("Hipress", "hipress_"))]


def test_wheel_has_licenses_and_no_cuda_code(site: Path):
    assert not list(site.rglob("libhipress_cuda.so"))
    (information,) = site.glob("hipress-*.dist-info")
    for folder in (ROOT / "third_party").iterdir():
        if folder.is_dir():
            assert list((information / "licenses" / "third_party" / folder.name).iterdir())
    assert (information / "licenses" / "LICENSE").exists()
    metadata = (information / "METADATA").read_text(encoding="utf-8")
    assert "License-Expression: Apache-2.0 AND BSL-1.0 AND BSD-2-Clause\n" in metadata
    version = re.search(r"^Version: (.+)$", metadata, re.MULTILINE)[1]
    code = "import hipress, hipress.native.library as l; print(hipress.__version__, l.version())"
    assert run(sys.executable, "-c", code, site=site).split() == [version] * 2


def test_smoke_test_passes_in_a_new_environment(wheel: Path, tmp_path: Path):
    """tools/smoke_wheel.py passes with the wheel in a new environment.

    Cost: It starts jobs that import each framework as a user's do.
    """
    venv = [sys.executable, "-m", "venv", "--without-pip", tmp_path]
    subprocess.run(venv, timeout=60, check=True)
    python = tmp_path / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], timeout=60, check=True)
    # The packages of the test environment, without its link to the source tree.
    (site,) = tmp_path.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    out = run(python, ROOT / "tools" / "smoke_wheel.py", site=tmp_path, timeout=250)
    for name in ("package", "doctor", "numpy", "torch", "mxnet"):
        assert re.search(rf"^  {name}: ", out, re.MULTILINE), out


def test_sdist_compiles_with_its_own_headers(tmp_path: Path):
    """Files of the sdist compile with the headers in it, not with those of the system.

    Cost: It makes an sdist, configures it, and compiles three files.
    """
    pytest.importorskip("scikit_build_core")
    code = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"
    build = [sys.executable, "-c", code, tmp_path]
    subprocess.run(build, cwd=ROOT, timeout=60, check=True, stdout=subprocess.DEVNULL)
    (sdist,) = tmp_path.glob("hipress-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path)
    (source,) = tmp_path.glob("hipress-*/")
    configure = ["cmake", "-S", source, "-B", source / "build", "-G", "Ninja"]
    run(*configure, f"-DPython3_EXECUTABLE={sys.executable}", "-DHIPRESS_CUDA=off", site=tmp_path)
    for project, file in (
        ("asio", "src/transport/acceptor.cc"),
        ("xxhash", "src/transport/checksum.cc"),
        ("dmlc-core", "src/kvstore/gradient_compression.cc"),
    ):
        target = f"CMakeFiles/hipress_objects.dir/{file}.o"
        run("ninja", "-C", source / "build", target, site=tmp_path, timeout=200)
        headers = run("ninja", "-C", source / "build", "-t", "deps", target, site=tmp_path)
        assert f"third_party/{project}/include" in headers
        assert not re.search(r"/usr/include/(asio|dmlc|xxh)", headers)


def test_a_codec_of_ones_own_is_compiled_by_the_installed_compiler(site: Path, tmp_path: Path):
    text = (ROOT / "docs/guides/write-a-codec.md").read_text(encoding="utf-8")
    (tmp_path / "signmean.cll").write_text(text.split("```c\n")[1].split("```")[0])
    out = run(site / "bin" / "compll", "check", str(tmp_path / "signmean.cll"), site=site)
    assert "200 of 200 random payloads refused" in out
