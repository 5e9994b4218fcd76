"""Conversion of HiPress's errors to MXNet's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mxnet.base import MXNetError

from hipress.errors import HipressError


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Raise MXNetError in place of HiPress's errors and ValueErrors."""
    try:
        yield
    except (HipressError, ValueError) as error:
        raise MXNetError(str(error)) from error
