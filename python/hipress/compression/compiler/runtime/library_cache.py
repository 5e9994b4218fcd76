"""Compiled code, kept by content: loading a library runs it, so only its user may have written it.

A folder or file that another user owns or may write to is refused, whatever its name. Root's are
taken: root can change any file of this process anyway, and an image may come with a filled cache.
"""

from __future__ import annotations

import atexit
import errno
import functools
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hipress.base import files
from hipress.compression.compiler.compiler_errors import BuildError

_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a file system that has no space left for this user."""


def cache_directory() -> Path:
    """Return HIPRESS_CACHE, or hipress below the user's cache directory."""
    chosen = os.environ.get("HIPRESS_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hipress"


def cxx() -> list[str]:
    """Return the C++ compiler's command, CXX or g++, if that exists."""
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler.split()[0]) is None:
        raise BuildError(f"there is no C++ compiler {compiler}; install g++ or set CXX")
    return compiler.split()


def library(
    name: str,
    source_name: str,
    source: str,
    command: Sequence[str],
    flags: Sequence[str] = (),
    depends: Sequence[Path] = (),
) -> Path:
    """Return a shared library, from the cache if it was compiled before.

    If the cache's disk is full, it is compiled in a temporary folder of this process.

    Args:
        name: Prefix of its file's name.
        source_name: Name of the source for the compiler, such as ``generated.cc``.
        source: The program.
        command: The compiler, which can be run, and its options.
        flags: Options after the source: libraries must come after their users.
        depends: Headers whose content affects the result.

    Raises:
        BuildError: If the compiler fails, or the cache cannot be written or is not safe.
    """
    digest = hashlib.sha256(" ".join([*command, *flags]).encode())
    stamp = os.stat(os.path.realpath(shutil.which(command[0])))
    digest.update(f"{stamp.st_size} {stamp.st_mtime_ns}".encode())
    for part in (source.encode(), *(header.read_bytes() for header in depends)):
        digest.update(part)
    target = cache_directory().absolute() / f"{name}-{digest.hexdigest()[:24]}.so"
    compile_to = partial(
        _compile, source_name=source_name, source=source, command=command, flags=flags
    )
    try:
        # Parents as the user's umask has them: they may be shared, like /tmp.
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        check_private(target.parent)
        if not os.path.lexists(target):
            compile_to(target)
        check_private(target)
    except OSError as error:
        if error.errno not in _FULL:
            raise BuildError(
                f"cannot use the cache of compiled code, {target.parent}: {error.strerror}; "
                "HIPRESS_CACHE names another folder"
            ) from error
        files.warn_once(target.parent, error)
        return _outside_the_cache(target.name, compile_to, error)
    return target


def _outside_the_cache(name: str, compile_to: Callable[[Path], None], full: OSError) -> Path:
    """Compile in a temporary folder in TMPDIR or memory, which ends with this process."""
    tried = []
    for place in (None, "/dev/shm"):
        try:
            target = Path(_temporary_folder(place), name)
            if not target.exists():
                compile_to(target)
            return target
        except OSError as error:
            tried.append(f"{place or 'the temporary folder'}: {error.strerror}")
    raise BuildError(
        f"cannot write compiled code: {cache_directory()}: {full.strerror}; {'; '.join(tried)}; "
        "HIPRESS_CACHE names another folder"
    ) from full


@functools.cache
def _temporary_folder(place: str | None) -> str:
    """Make a folder that only this user can open, and that ends with this process."""
    folder = tempfile.mkdtemp(prefix="hipress-", dir=place)
    pid = os.getpid()
    atexit.register(lambda: os.getpid() == pid and shutil.rmtree(folder, ignore_errors=True))
    return folder


def check_private(path: Path) -> None:
    """Raise BuildError for a file or folder that another user could have changed."""
    # A link is judged by its target: the folder's mode decides which users may set links here.
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), 0):
        raise BuildError(
            f"{path} belongs to user {found.st_uid}, and compiled code is taken only from user "
            f"{os.geteuid()}: remove it, or name another folder with HIPRESS_CACHE"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BuildError(
            f"{path} can be written by other users, and compiled code in it would run as this one: "
            f"look at what is there, then `chmod go-w {path}`, or name another folder with "
            "HIPRESS_CACHE"
        )


def _compile(
    target: Path, source_name: str, source: str, command: Sequence[str], flags: Sequence[str]
) -> None:
    """Compile a library. OSError, or ENOSPC of the compiler, if the folder takes none."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        text, built = Path(folder, source_name), Path(folder, "generated.so")
        text.write_text(source)
        line = [*command, str(text), *flags, "-o", str(built)]
        # The compiler's temporary files go to this folder: the library needs space here anyway.
        env = {**os.environ, "TMPDIR": folder, "LC_ALL": "C"}
        result = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
        full = next((code for code in _FULL if os.strerror(code) in result.stderr), None)
        if result.returncode != 0 and full is not None:
            raise OSError(full, os.strerror(full), str(built))
        if result.returncode != 0:
            raise BuildError(f"{line[0]} refused generated code:\n{result.stderr[:4000]}")
        built.chmod(0o700)
        # Processes that compile the same code at once see no partial file; the same is true after a
        # crash.
        files.replace(built, target)
