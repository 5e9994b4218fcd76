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
from hipress.compression.compiler.compiler_errors import BuildError, CompileError, PayloadError
from hipress.compression.compiler.frontend.source_reader import read_program
from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.passes import optimize
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
"""Built-in algorithms."""
loaded_sources: dict[str, Path] = {}
"""Source files of the algorithms that this process has loaded, by type."""


def compile_file(path: str | os.PathLike[str]) -> Program:
    """Return the optimized program of a source file.

    Raises:
        CompileError: For any error in it, with line and column.
        hipress.base.files.FileError: If it cannot be read.
    """
    return optimize(read_program(files.read(path, "algorithm"), os.fspath(path)))


def load(path: str | os.PathLike[str]) -> str:
    """Compile an algorithm, or take it from the cache, and register it in this process.

    Every worker and server of a job must load it: list the files in HIPRESS_CODECS, separated by
    ":", and each process loads them when it imports hipress.

    Returns:
        Its name, a type for hipress.Compressor and set_gradient_compression.

    Raises:
        CompileError: If the text is wrong.
        BuildError: If there is no C++ compiler.
        ValueError: If another algorithm has the same name.
    """
    from hipress.native import library  # late, because it is built from output of this package

    source = Path(path).resolve()
    name = library.register_codec(build(compile_file(path)))
    loaded_sources[name] = source
    return name
