"""CompLL: a small language in which a gradient compression algorithm is written once.

>>> from hipress.compression import compiler as compll
>>> name = compll.load("my_algorithm.cll")     # from now on a type like any other
>>> compressor = hipress.Compressor(name)

What belongs here: from an algorithm's text to code. What does not: calls of a codec in training.
The folders are the pipeline::

    specs/*.cll --> frontend --> ir --> passes --> backends/cpp, cuda --> runtime: compile, call
                    text to      the    fewer      +-- common: one emitter for the C family
                    typed IR     form   loops      backends/numpy: the reference for all bits

``emit.py`` and ``build_builtins.py`` join them. Frontend and passes do not know the backends. The
page docs/concepts/compll.md explains what each part does.
"""

from __future__ import annotations

import os
from pathlib import Path

from hipress.base import files
from hipress.compression.compiler.backends.numpy.interpreter import Interpreter
from hipress.compression.compiler.errors import BuildError, CompileError, PayloadError
from hipress.compression.compiler.frontend.program import read_program
from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.passes.pipeline import optimize
from hipress.compression.compiler.runtime.native import Compiled, build

__all__ = [
    "SPECS",
    "BuildError",
    "CompileError",
    "Compiled",
    "Interpreter",
    "PayloadError",
    "Program",
    "compile_file",
    "load",
]

SPECS = Path(__file__).parent / "specs"
"""The built-in algorithms."""
loaded_sources: dict[str, Path] = {}
"""The files that algorithms were loaded from in this process, by type."""


def compile_file(path: str | os.PathLike[str]) -> Program:
    """Return the optimized program of a source file.

    :raises CompileError: with line and column, for anything wrong in it
    :raises hipress.base.files.FileError: if it cannot be read
    """
    return optimize(read_program(files.read(path, "algorithm"), os.fspath(path)))


def load(path: str | os.PathLike[str]) -> str:
    """Compile an algorithm, or take it from the cache, and register it in this process.

    Every worker and server of a job must load it: list the files in HIPRESS_CODECS, separated by
    ":", and each process does so when hipress is imported.

    :returns: its name, a type for hipress.Compressor and set_gradient_compression
    :raises CompileError: if the text is wrong
    :raises BuildError: if there is no C++ compiler
    :raises ValueError: if the name is taken by another algorithm
    """
    from hipress.native import library  # late: it is built of what this package compiles

    source = Path(path).resolve()
    name = library.register_codec(build(compile_file(path)))
    loaded_sources[name] = source
    return name
