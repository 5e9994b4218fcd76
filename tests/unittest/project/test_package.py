"""Metadata of the package, and the rules of its builds. test_wheel.py installs a wheel."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
URL = "https://example.org/someone/hipress"


@pytest.fixture(scope="module")
def readme_metadata():
    """Return the module packaging/readme_metadata.py, which only builds import."""
    path = ROOT / "packaging" / "readme_metadata.py"
    spec = importlib.util.spec_from_file_location("readme_metadata", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_links_become_absolute(readme_metadata, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HIPRESS_REPOSITORY_URL", URL + "/")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = readme_metadata.LINK.findall(readme)
    assert len(links) > 10
    for _, _, path in links:
        assert (ROOT / path.partition("#")[0]).exists(), path
    fields = readme_metadata.dynamic_metadata({}, {"version": "1.2.3"})
    text = fields["readme"]["text"]
    assert f"]({URL}/blob/v1.2.3/docs/start/pytorch.md)" in text
    assert f"]({URL}/raw/v1.2.3/docs/images/slow-network.png)" in text
    assert not readme_metadata.LINK.findall(text)
    assert fields["urls"]["Repository"] == URL


def test_wheel_of_an_sdist_keeps_its_url(readme_metadata, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HIPRESS_REPOSITORY_URL", raising=False)
    assert readme_metadata.repository_url() == ""
    (tmp_path / "PKG-INFO").write_text(f"Name: hipress\nProject-URL: Repository, {URL}\n")
    assert readme_metadata.repository_url() == URL


def test_relative_links_stop_an_upload(tmp_path):
    for name, link in (("good", URL), ("bad", "docs/index.md")):
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            wheel.writestr("hipress-1.dist-info/METADATA", f"Name: hipress\n\n[a guide]({link})\n")
    command = [sys.executable, ROOT / "packaging" / "readme_metadata.py"]
    for name, status in (("good", 0), ("bad", 1)):
        done = subprocess.run(
            [*command, tmp_path / f"{name}.whl"], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == status, done.stderr
    assert done.stderr.startswith("bad.whl: relative links in its description, for example docs/")


def test_cuda12_is_not_built_with_another_cuda(tmp_path):
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        pytest.skip("cmake or ninja is not installed")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    nvcc.chmod(0o755)
    configure = ["cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja"]
    done = subprocess.run(
        [
            *configure,
            f"-DPython3_EXECUTABLE={sys.executable}",
            "-DHIPRESS_CUDA=on",
            "-DHIPRESS_CUDA_MAJOR=12",
            f"-DHIPRESS_NVCC={nvcc}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    error = " ".join(done.stderr.split())
    assert f"hipress-cuda12 is built with CUDA 12, but {nvcc} is of release 13.0" in error
