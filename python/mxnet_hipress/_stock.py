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
"""MXNet's distributed stores. MXNet does not look at the case of letters in them."""

_TYPES = ("none", "2bit")
_PARAMETERS = {"type", "threshold"}


def compression(store: str, params: Mapping[str, object] | CompressionConfig) -> CompressionConfig:
    """Return the compression that a store of that name is asked for.

    MXNet compresses gradients of every size, and never what is pulled. So does a store with one
    of its names whose parameters MXNet knows, too. A type or parameter of ours, or a store with a
    name of ours, asks for our defaults.

    :param store: the name that the store was created with
    :param params: of set_gradient_compression
    :raises ValueError: for what is not allowed
    """
    config = CompressionConfig.of(params)
    if config is params:
        return config
    asks_for_ours = params.keys() - _PARAMETERS or params.get("type") not in _TYPES
    if store.lower() not in STOCK_NAMES or asks_for_ours:
        return config
    return replace(config, min_size=0, pull="none")
