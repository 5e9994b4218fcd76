"""Reading and writing the user's files, with errors that are sentences."""

from __future__ import annotations

import json
import os
from pathlib import Path


class FileError(ValueError):
    """A file cannot be read or written; the message names it and says why."""


def read(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file.

    :param what: what it holds, for the error: "plan", "algorithm"
    :raises FileError: if there is no such file, it cannot be read, or is no text in UTF-8
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read the {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: this {what} is not a text file") from error


def read_json(path: str | os.PathLike[str], what: str) -> dict:
    """The JSON object that a file holds.

    :param what: as in :func:`read`
    :raises FileError: as :func:`read`, or if the text is not JSON, nests too deeply for Python's
        parser, or is a list, a string or a number
    """
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


def write(path: str | os.PathLike[str], what: str, text: str) -> None:
    """Replaces a file's text at once: who reads meanwhile gets all of the old one, or of the new.

    :raises FileError: if it cannot be written
    """
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(f"cannot write the {what} {path}: {error.strerror}") from error
