"""A job's compression parameters, as a user gives them and as the native library takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from hipress._lib import check_call, lib, string_pairs
from hipress.key_graphs import AUTO
from hipress.operations import HipressError
from hipress.secopa import plan


def pairs(params: Mapping[str, object]) -> tuple[int, ctypes.Array, ctypes.Array]:
    """The parameters' count, names and values."""
    topology = {"topology": str(params["topology"]).lower()} if "topology" in params else {}
    return string_pairs({**params, **topology})


def check(params: Mapping[str, object]) -> None:
    """Refuses what :meth:`hipress.node.Node.set_gradient_compression` refuses in every job.

    :raises HipressError: a sentence that lists what is allowed
    """
    try:
        check_call(lib.HipressCheckGradientCompression(*pairs(params)))
        if params.get("plan") not in (None, "", AUTO):
            plan.load(str(params["plan"]))
    except ValueError as error:
        raise HipressError(str(error)) from error
