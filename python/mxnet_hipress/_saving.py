"""Trainers and Modules that update weights themselves save what compression remembers, too."""

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
    """Make their files of optimizer states come with those of compression.

    With the optimizer on the servers they leave it all to the store.
    """
    _wrap(gluon.Trainer, "save_states", KVStore.save_compression_states)
    _wrap(gluon.Trainer, "load_states", KVStore.resume_compression)
    _wrap(module.Module, "save_optimizer_states", KVStore.save_compression_states)
    _wrap(module.Module, "load_optimizer_states", KVStore.resume_compression)


def _updates_by_itself(trains: object) -> bool:
    return isinstance(trains._kvstore, KVStore) and not trains._update_on_kvstore


def _save_at_once(save: Callable[[str], None], fname: str) -> None:
    """All workers of a host may write the same file, and be killed meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        partial = os.path.join(folder, "states")
        save(partial)
        with files.replacing(fname) as file:
            file.write(Path(partial).read_bytes())


def _wrap(kind: type, name: str, then: Callable[[KVStore, str], None]) -> None:
    real = getattr(kind, name)

    @functools.wraps(real)
    def call(self: object, fname: str) -> None:
        if name.startswith("save") and _updates_by_itself(self):
            _save_at_once(functools.partial(real, self), fname)
        else:
            real(self, fname)  # which may only now make the store
        if _updates_by_itself(self):
            then(self._kvstore, fname)

    setattr(kind, name, call)
