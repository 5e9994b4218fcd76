"""The supervisor's program, and the command that runs it: both need nothing on the host."""

from __future__ import annotations

import functools
from pathlib import Path

from hipress.base import process_table

from . import supervisor

#: Python code that reads a program's length and text from standard input, and runs it.
BOOTSTRAP = (
    "import os;"
    'r=lambda n,s=b"":s if len(s)==n else r(n,s+(os.read(0,n-len(s)) or exit(1)));'
    "exec(r(int(r(8))))"
)


def python_command(python: str, code: str = BOOTSTRAP) -> list[str]:
    """Return the command that runs a supervisor, or other code, in an isolated Python."""
    return [python, "-I", "-S", "-c", code]


def message(text: bytes) -> bytes:
    """Return a text after its length in eight digits."""
    return b"%08d" % len(text) + text


@functools.cache
def supervisor_program() -> bytes:
    """Return what BOOTSTRAP reads: the supervisor, and the module that it imports."""
    module, main = (Path(one.__file__).read_text() for one in (process_table, supervisor))
    text = (
        "import sys, types\n"
        f"module = sys.modules[{process_table.__name__!r}] = types.ModuleType('process_table')\n"
        f"exec(compile({module!r}, 'process_table.py', 'exec'), module.__dict__)\n"
        f"exec(compile({main!r}, 'supervisor.py', 'exec'), globals())\n"
    )
    return message(text.encode())
