"""Behavior of MXNet's own names: a script written for MXNet gets MXNet's results, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hipress.config import CompressionConfig

STOCK_NAMES = (
    "dist",
    "dist_sync",
    "dist_async",
    "dist_device_sync",
    "dist_device_async",
    "dist_sync_device",
    "dist_async_device",
)
"""MXNet's distributed stores. MXNet ignores the case of these names."""

_TYPES = ("none", "2bit")
_PARAMETERS = {"type", "threshold"}


def compression(store: str, params: Mapping[str, object] | CompressionConfig) -> CompressionConfig:
    """Return the compression that a store of this name uses.

    MXNet compresses gradients of every size, and no pulled values. A store with one of MXNet's
    names does the same if all parameters are MXNet's. Otherwise HiPress's defaults apply.
    """
    config = CompressionConfig.of(params)
    if config is params:
        return config
    asks_for_ours = params.keys() - _PARAMETERS or params.get("type") not in _TYPES
    if store.lower() not in STOCK_NAMES or asks_for_ours:
        return config
    return replace(config, min_size=0, pull="none")
