"""Algorithms of HIPRESS_CODECS, which the import of this module loads, once per process.

Modules that use codecs import it, so that all processes of a job have the same ones.
"""

from __future__ import annotations

import os


def _load() -> None:
    """Load the algorithms of HIPRESS_CODECS.

    Raises:
        ImportError: If an algorithm is wrong. The message has the reason.
    """
    paths = [path for path in os.environ.get("HIPRESS_CODECS", "").split(os.pathsep) if path]
    if not paths:
        return  # most processes need no compiler
    from hipress.compression import compiler

    for path in paths:
        try:
            compiler.load(path)
        except (ValueError, RuntimeError, OSError) as error:
            raise ImportError(f"HIPRESS_CODECS names {path}: {error}") from error
        except Exception as error:  # an internal error of the compiler
            raise ImportError(f"HIPRESS_CODECS names {path}: {error!r}") from error


_load()
