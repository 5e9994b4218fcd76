"""Trainers and Modules that also save the states of compression with the optimizer's states."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from mxnet import gluon, module

from hipress.base import files
from mxnet_hipress.kvstore import KVStore


def extend() -> None:
    """Make Trainers and Modules also save and load the states of compression.

    If the optimizer runs on the servers, the store saves everything.
    """
    _wrap(gluon.Trainer, "save_states", KVStore.save_compression_states)
    _wrap(gluon.Trainer, "load_states", KVStore.resume_compression)
    _wrap(module.Module, "save_optimizer_states", KVStore.save_compression_states)
    _wrap(module.Module, "load_optimizer_states", KVStore.resume_compression)


def _updates_by_itself(trains: object) -> bool:
    return isinstance(trains._kvstore, KVStore) and not trains._update_on_kvstore


def _wrap(kind: type, name: str, then: Callable[[KVStore, str], None]) -> None:
    real = getattr(kind, name)

    @functools.wraps(real)
    def call(self: object, fname: str) -> None:
        if name.startswith("save") and _updates_by_itself(self):
            # To a temporary file first: workers of a host may write one file, and may be killed.
            with tempfile.TemporaryDirectory() as folder:
                partial = Path(folder, "states")
                real(self, os.fspath(partial))
                with files.replacing(fname) as file:
                    file.write(partial.read_bytes())
        else:
            real(self, fname)  # may create the store
        if _updates_by_itself(self):
            then(self._kvstore, fname)

    setattr(kind, name, call)
