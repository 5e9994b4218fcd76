"""The algorithms that HIPRESS_CODECS lists: importing this module loads them, once a process.

Whatever uses codecs imports it, so that every process of a job has the same ones.
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
        return  # most processes: they need no compiler
    from hipress.compression import compiler

    for path in paths:
        try:
            compiler.load(path)
        except (ValueError, RuntimeError, OSError) as error:
            raise ImportError(f"HIPRESS_CODECS names {path}: {error}") from error
        except Exception as error:  # the compiler's own fault: not a sentence
            raise ImportError(f"HIPRESS_CODECS names {path}: {error!r}") from error


_load()
