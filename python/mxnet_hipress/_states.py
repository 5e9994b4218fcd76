"""Optimizers as servers and files hold them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from mxnet import gluon
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress import files

_FORMAT = "hipress optimizer states 1"


def portable(optimizer: opt.Optimizer) -> opt.Optimizer:
    """An optimizer as the servers need it: pickling drops the Gluon parameters' multipliers."""
    copy = pickle.loads(pickle.dumps(optimizer))
    for index, param in (optimizer.param_dict or {}).items():
        copy.lr_mult[index] = param.lr_mult
        copy.wd_mult[index] = param.wd_mult
    return copy


def write(path: str, states: list[bytes], with_optimizer: bool) -> None:
    """Replaces a file at once.

    :param states: one a server, from mxnet.optimizer.Updater.get_states
    :param with_optimizer: whether these hold the optimizer itself
    :raises MXNetError: if it cannot be written; what was there is there still
    """
    content = pickle.dumps({"format": _FORMAT, "states": states, "optimizer": with_optimizer})
    try:
        files.write(path, "optimizer states", content)
    except files.FileError as error:
        raise MXNetError(str(error)) from error


def read(path: str) -> tuple[list[bytes], bool]:
    """Reads what :func:`write` was given.

    :raises MXNetError: if there is no such file, it cannot be read, or holds something else
    """
    try:
        content = pickle.loads(Path(path).read_bytes())
        if content["format"] == _FORMAT:
            return content["states"], content["optimizer"]
    except OSError as error:
        raise MXNetError(f"cannot read the optimizer states {path}: {error.strerror}") from error
    except Exception as error:  # noqa: BLE001 - a pickle of something else can raise anything
        raise MXNetError(_foreign(path)) from error
    raise MXNetError(_foreign(path))


def _foreign(path: str) -> str:
    return f"{path} holds no optimizer states of a distributed store"


def load_trainer(trainer: gluon.Trainer, states: bytes) -> None:
    """Makes a Trainer's optimizer what its updater's get_states(dump_optimizer=True) gave, with its
    schedule and counts. Both stay the objects that they are: the script may have them, too."""
    load_optimizer(trainer.optimizer, trainer._updaters, states)


def load_optimizer(
    optimizer: opt.Optimizer, updaters: Iterable[opt.Updater], states: bytes
) -> None:
    """The same for an optimizer and its updaters, one a device."""
    loaded_states, loaded = pickle.loads(states)
    schedule = optimizer.lr_scheduler
    about = {name: value for name, value in vars(loaded).items() if name != "param_dict"}
    if schedule is not None and type(schedule) is type(loaded.lr_scheduler):
        vars(schedule).update(vars(about.pop("lr_scheduler")))
    vars(optimizer).update(about)
    for updater in updaters:
        updater.states = dict(loaded_states)
        updater.states_synced = dict.fromkeys(loaded_states, False)
