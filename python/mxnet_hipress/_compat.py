"""Import of MXNet 1.9 where a plain import would fail or never return."""

from __future__ import annotations

import builtins
import os
from types import ModuleType

from hipress.errors import not_installed

_INSTALL = "needs MXNet 1.9.1 (Python 3.9 to 3.11): pip install 'hipress[mxnet]'"
_ALIASES = ("bool", "int", "float", "complex", "object", "str")
"""Names (np.bool, ...) that MXNet's import needs and that NumPy 1.24 and later lack."""


def import_mxnet() -> ModuleType:
    """Import MXNet and return it, also in a server, where a plain import would not return."""
    import numpy

    if int(numpy.__version__.split(".")[0]) >= 2:
        raise ImportError(
            f"MXNet does not work with NumPy {numpy.__version__}, and mxnet_hipress {_INSTALL}"
        )
    for name in _ALIASES:
        if name not in numpy.__dict__:
            setattr(numpy, name, getattr(builtins, name))
    role = os.environ.get("DMLC_ROLE")
    if role == "worker":
        role = None
    if role is not None:
        del os.environ["DMLC_ROLE"]
    try:
        import mxnet
    except ModuleNotFoundError as error:
        raise not_installed(error, "mxnet", f"mxnet_hipress {_INSTALL}") from None
    finally:
        if role is not None:
            os.environ["DMLC_ROLE"] = role
    return mxnet
