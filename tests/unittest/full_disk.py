"""Program that writes files to a folder on a full disk. The first argument selects what it writes.

Usage: full_disk.py WAY FOLDER
"""

import ctypes
import os
import sys
from pathlib import Path

from hipress.base import files
from hipress.compression.compiler.runtime.native import compile_cached


def code(folder: Path) -> None:
    """Compile and load a library whose cache is full."""
    os.environ["HIPRESS_CACHE"] = str(folder / "cache")
    library = compile_cached("answer", 'extern "C" int answer() { return 42; }', [])
    print("answer", ctypes.CDLL(str(library)).answer())


def checkpoint(folder: Path) -> None:
    """Try to replace a checkpoint that was written while there was space."""
    try:
        files.write(folder / "checkpoint", "checkpoint", bytes(1 << 20))
    except files.FileError as error:
        print(error)
    print(sorted(os.listdir(folder)), (folder / "checkpoint").read_bytes())


def figures(folder: Path) -> None:
    """Write more figures for TensorBoard than tensorboardX's queue holds."""
    from hipress.autotune.journal import tensorboard_writer

    for step in range(50):
        tensorboard_writer(str(folder)).add_scalars({"step": step, "bytes": step, "ratio": 2.0})
    print("done")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
