"""Trainers and Modules that update weights themselves save what compression remembers, too."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mxnet import gluon, module

from mxnet_hipress.kvstore import KVStore


def extend() -> None:
    """Makes their files of optimizer states come with those of compression.

    With the optimizer on the servers they leave it all to the store.
    """
    _wrap(gluon.Trainer, "save_states", KVStore.save_compression_states)
    _wrap(gluon.Trainer, "load_states", KVStore.resume_compression)
    _wrap(module.Module, "save_optimizer_states", KVStore.save_compression_states)
    _wrap(module.Module, "load_optimizer_states", KVStore.resume_compression)


def _wrap(kind: type, name: str, then: Callable[[KVStore, str], None]) -> None:
    real = getattr(kind, name)

    @functools.wraps(real)
    def call(self: object, fname: str) -> None:
        real(self, fname)
        if isinstance(self._kvstore, KVStore) and not self._update_on_kvstore:
            then(self._kvstore, fname)

    setattr(kind, name, call)
