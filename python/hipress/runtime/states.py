"""Files with states of compression: residuals, momentum of codecs, counters of random ones.

A job of the same shape (workers, servers, topology, keys, compression) that loads them continues
bit for bit. Each worker has one file, ``PATH.worker-RANK``. Worker 0's file also holds the states
of the servers.

Layout: a line of text, a line of JSON (owner, numbers of nodes, sizes, a checksum), then the bytes.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

from hipress.base import files
from hipress.runtime.node import LAST_KEY, HipressError, Node

_FIRST_LINE = b"HiPress compression states 1\n"
_WHAT = "compression states"


def path_of(path: str | os.PathLike[str], rank: int) -> Path:
    """Return the path of a worker's file."""
    return Path(f"{os.fspath(path)}.worker-{rank}")


def save(node: Node, path: str | os.PathLike[str], first: int = 0, last: int = LAST_KEY) -> None:
    """Replace this worker's file atomically, unless there is no file and nothing to save.

    Every worker calls it after the same step, when all its pulls have completed.

    Args:
        node: The worker.
        path: Path of the files, without the suffix.
        first: First key.
        last: Last key, included.

    Raises:
        HipressError: If the file cannot be written, which leaves the existing one, or a node fails.
    """
    servers = range(node.num_servers) if node.rank == 0 else ()
    parts = [node.save_states(server, first, last) for server in (None, *servers)]
    own = path_of(path, node.rank)
    if not any(parts) and not own.exists():
        return
    header = {
        "worker": node.rank,
        "workers": node.num_workers,
        "servers": node.num_servers,
        "sizes": [len(part) for part in parts],
        "crc32": zlib.crc32(b"".join(parts)),
    }
    try:
        files.write(own, _WHAT, b"".join([_FIRST_LINE, json.dumps(header).encode(), b"\n", *parts]))
    except files.FileError as error:
        raise HipressError(str(error)) from error


def read(node: Node, path: str | os.PathLike[str]) -> list[bytes] | None:
    """Read this worker's states, then those of servers that it loads; None without a file.

    Raises:
        HipressError: If the file cannot be read or is incomplete, or if it belongs to another
            worker or to a job with other numbers of workers or servers.
    """
    own = path_of(path, node.rank)
    try:
        content = own.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HipressError(f"cannot read the {_WHAT} {own}: {error.strerror}") from error
    if not content.startswith(_FIRST_LINE):
        raise HipressError(f"{own} holds no {_WHAT}")
    line, _, body = content[len(_FIRST_LINE) :].partition(b"\n")
    try:
        header = json.loads(line)
        sizes, crc = [int(size) for size in header["sizes"]], header["crc32"]
        shape = [header["worker"], header["workers"], header["servers"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise HipressError(f"{own} holds no {_WHAT} that can be read") from error
    if min(sizes) < 0 or sum(sizes) != len(body) or zlib.crc32(body) != crc:
        raise HipressError(f"{own} is not whole: its {_WHAT} were cut off or changed")
    if shape != [node.rank, node.num_workers, node.num_servers]:
        raise HipressError(
            f"{own} is of worker {shape[0]} of a job with {shape[1]} workers and {shape[2]} "
            f"servers, and this is worker {node.rank} of {node.num_workers}, with "
            f"{node.num_servers} servers"
        )
    cuts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    return [body[begin:end] for begin, end in zip(cuts, cuts[1:])]


def load(node: Node, parts: list[bytes], first: int = 0, last: int = LAST_KEY) -> None:
    """Load the states of initialized keys that :func:`read` returned.

    Raises:
        HipressError: If they do not match this job's keys.
    """
    own, *servers = parts
    for server, states in enumerate(servers):
        node.load_states(states, server, first, last)
    node.load_states(own, None, first, last)
