"""Cache of compiled code: it is loaded only if no other user could have written it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.processes import base_environment
from hipress.compression import compiler
from hipress.compression.compiler.runtime.native import compile_cached

OTHER = 65534
SOURCE = 'extern "C" int answer() { return 42; }'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return a folder for the cache that does not exist yet."""
    monkeypatch.setenv("HIPRESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_made_is_private(cache):
    before = os.umask(0o002)
    try:
        library = compile_cached("answer", SOURCE, [])
    finally:
        os.umask(before)
    assert library.parent == cache
    assert cache.stat().st_mode & 0o777 == 0o700
    assert library.stat().st_mode & 0o022 == 0
    assert [file.name for file in cache.iterdir()] == [library.name]  # nothing partial
    stamp = library.stat().st_mtime_ns
    assert compile_cached("answer", SOURCE, []) == library
    assert library.stat().st_mtime_ns == stamp, "it was compiled again"


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(cache, mode):
    library = compile_cached("answer", SOURCE, [])
    cache.chmod(mode)
    with pytest.raises(compiler.BuildError, match="can be written by other users.*chmod go-w"):
        compile_cached("answer", SOURCE, [])
    cache.chmod(0o755)
    assert compile_cached("answer", SOURCE, []) == library


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_library_that_others_can_write_to_is_refused(cache, mode):
    library = compile_cached("answer", SOURCE, [])
    library.chmod(mode)
    with pytest.raises(compiler.BuildError, match="can be written by other users"):
        compile_cached("answer", SOURCE, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["folder", "library", "target of a link"])
def test_what_another_user_owns_is_refused(cache, tmp_path, what):
    library = compile_cached("answer", SOURCE, [])
    if what == "target of a link":
        planted = tmp_path / "planted.so"
        library.rename(planted)
        library.symlink_to(planted)
        os.chown(planted, OTHER, -1)
    else:
        os.chown({"folder": cache, "library": library}[what], OTHER, -1)
    with pytest.raises(compiler.BuildError, match=f"belongs to user {OTHER}"):
        compile_cached("answer", SOURCE, [])


def test_a_planted_library_is_not_run(cache, tmp_path):
    """A planted library with an algorithm's library name is not run where other users can write."""
    library = compile_cached("answer", SOURCE, [])
    marker = tmp_path / "ran"
    planted = f'__attribute__((constructor)) static void run() {{ fopen("{marker}", "w"); }}'
    evil = tmp_path / "evil.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(evil)],
        input="#include <cstdio>\n" + planted,
        text=True,
        check=True,
    )
    evil.replace(library)
    library.chmod(0o777)
    code = (
        "import ctypes\n"
        "from hipress.compression.compiler.runtime.native import compile_cached\n"
        f"ctypes.CDLL(str(compile_cached('answer', {SOURCE!r}, [])))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=base_environment({"HIPRESS_CACHE": str(cache)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0 and "can be written by other users" in ended.stderr
    assert not marker.exists()
