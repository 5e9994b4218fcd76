"""Our errors as MXNet's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mxnet.base import MXNetError

from hipress.errors import HipressError


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Turn our errors into MXNet's."""
    try:
        yield
    except (HipressError, ValueError) as error:
        raise MXNetError(str(error)) from error
