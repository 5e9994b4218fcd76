"""What can be said of a job's compression parameters before there is a job."""

from __future__ import annotations

from collections.abc import Mapping

from hipress._lib import check_call, lib, string_pairs
from hipress.casync import topologies
from hipress.errors import HipressError
from hipress.key_graphs import AUTO
from hipress.secopa import plan


def check(params: Mapping[str, object]) -> None:
    """Refuses what :meth:`hipress.node.Node.set_gradient_compression` refuses in every job.

    :raises HipressError: a sentence that lists what is allowed
    """
    try:
        check_call(lib.HipressCheckGradientCompression(*string_pairs(params)))
        if str(params.get("topology", AUTO)).lower() != AUTO:
            topologies.named(str(params["topology"]))
        if params.get("plan") not in (None, "", AUTO):
            plan.load(str(params["plan"]))
    except ValueError as error:
        raise HipressError(str(error)) from error
