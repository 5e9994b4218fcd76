"""Reading and writing of the user's files, with error messages for users."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

_log = logging.getLogger("hipress")
_reported: set[str] = set()
"""Files that :func:`warn_once` has reported."""
_numbers = itertools.count()
"""Numbers of this process's partial files: two threads may write the same file."""


class FileError(ValueError):
    """File that cannot be read or written. The message has its name and the reason."""


def anonymous(name: str, content: bytes) -> BinaryIO:
    """Return an open file without a path that only this user can read.

    It is in memory where Python has ``memfd_create``, and otherwise a temporary file on disk that
    is already unlinked. Other programs open it as ``/proc/PID/fd/DESCRIPTOR``.
    """
    if hasattr(os, "memfd_create"):
        file: BinaryIO = os.fdopen(os.memfd_create(name), "w+b")
    else:
        file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
    file.write(content)
    file.flush()
    return file


def read(path: str | os.PathLike[str], what: str) -> str:
    """Return the text of a file. ``what`` is the kind of content for errors: "plan"."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read the {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: this {what} is not a text file") from error


def read_json(path: str | os.PathLike[str], what: str) -> dict:
    """Return the JSON object in a file. One that nests too deeply for Python is an error."""
    text = read(path, what)
    try:
        values = json.loads(text)
    except RecursionError:
        raise FileError(f"{path}: this {what} is JSON that nests too deeply to be one") from None
    except ValueError as error:
        raise FileError(f"{path}: this {what} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise FileError(f"{path}: this {what} is a JSON {type(values).__name__}, not an object")
    return values


def read_private(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in a folder that belongs to this user, and only they may change."""
    parent, name = os.path.split(path)
    folder = os.open(parent or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(folder)
        if about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise PermissionError(errno.EPERM, "another user may have written it", os.fspath(path))
        with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)) as file:
            return file.read()
    finally:
        os.close(folder)


def write(path: str | os.PathLike[str], what: str, content: str | bytes) -> None:
    """Replace a file's content, as :func:`replacing` does. Text is written as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise FileError(f"cannot write the {what} {path}: {error.strerror}") from error


def warn_once(path: str | os.PathLike[str], error: Exception) -> None:
    """Log once that a file which training does not need cannot be written."""
    if os.fspath(path) in _reported:
        return
    _reported.add(os.fspath(path))
    what = error
    if isinstance(error, OSError):
        what = f"cannot write {os.fspath(path)}: {error.strerror or error}"
    _log.warning("%s; training continues without it", what)


class LineFile:
    """A file of lines that training does not need, such as a journal.

    A line that cannot be written, for example to a full disk, is lost. The first failure is a
    warning, and the next lines are written as soon as they can be.

    ``what`` the file holds is for the warning: "journal". Missing folders are made.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        self._path, self._what = Path(path), what
        self._handle: int | None = None
        self._cut = False  # whether the last line was written only in part

    def write(self, line: str) -> None:
        """Add a line."""
        try:
            if self._handle is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._handle = os.open(self._path, flags, 0o666)
            data = memoryview((("\n" if self._cut else "") + line + "\n").encode())
            while data:
                data = data[os.write(self._handle, data) :]
                self._cut = bool(data)
        except OSError as error:
            reason = f"cannot write the {self._what} {self._path}: {error.strerror}"
            warn_once(self._path, FileError(reason))

    def close(self) -> None:
        """Close the file. The next line opens it again."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)

    def __del__(self) -> None:
        self.close()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces ``path`` when the block ends without an exception.

    A reader gets the complete old content or the complete new one, also after a crash or on a full
    disk: the new content is on the disk before it gets the name. The file's mode is kept. If the
    block raises, the new content is deleted.
    """
    # A link remains, and its target is replaced.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a device or pipe has no old content to keep
        with open(target, "wb") as file:
            yield file
        return
    partial, file = _new_sibling(target)
    try:
        with file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
        replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _new_sibling(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new file in the same folder, whatever name killed processes left."""
    while True:
        partial = target.with_name(f"{target.name}.{os.getpid()}.{next(_numbers)}.partial")
        with contextlib.suppress(FileExistsError):
            return partial, open(partial, "xb")


def replace(new: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename a file or folder to ``target`` so that it is complete even after a power cut."""
    sync(new)
    os.replace(new, target)
    sync(Path(target).parent)


def sync(path: str | os.PathLike[str]) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
