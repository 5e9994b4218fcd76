"""Optimizers as servers and files hold them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

import mxnet as mx
from mxnet import gluon
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.base import files

_FORMAT = "hipress optimizer states 1"


def portable(optimizer: opt.Optimizer) -> opt.Optimizer:
    """Return an optimizer as the servers need it: pickling drops the Gluon parameters'
    multipliers."""
    copy = pickle.loads(pickle.dumps(optimizer))
    for index, param in (optimizer.param_dict or {}).items():
        copy.lr_mult[index] = param.lr_mult
        copy.wd_mult[index] = param.wd_mult
    return copy


SERVERS, WORKERS = "servers", "workers"
"""Whose updaters states are of: servers know parts of keys, without shapes."""


def write(path: str, states: list[bytes], with_optimizer: bool, of: str = WORKERS) -> None:
    """Replace a file at once.

    :param states: from mxnet.optimizer.Updater.get_states: one a server, or that of all workers
    :param with_optimizer: whether these hold the optimizer itself
    :raises MXNetError: if it cannot be written; what was there is there still
    """
    about = {"format": _FORMAT, "states": states, "optimizer": with_optimizer, "of": of}
    content = pickle.dumps(about)
    try:
        files.write(path, "optimizer states", content)
    except files.FileError as error:
        raise MXNetError(str(error)) from error


def read(path: str, of: str = WORKERS) -> tuple[list[bytes], bool]:
    """Read what :func:`write` was given.

    :raises MXNetError: if there is no such file, it cannot be read, or holds something else, or
        states of the other kind of job
    """
    try:
        content = pickle.loads(Path(path).read_bytes())
        known = content["format"] == _FORMAT
        whose = content.get("of", of)  # files of before do not say
    except OSError as error:
        raise MXNetError(f"cannot read the optimizer states {path}: {error.strerror}") from error
    except Exception as error:  # a pickle of something else can raise anything
        raise MXNetError(_foreign(path)) from error
    if not known:
        raise MXNetError(_foreign(path))
    if whose != of or (of == WORKERS and len(content["states"]) != 1):
        whose = SERVERS if of == WORKERS else WORKERS
        has = "a job without servers" if whose == WORKERS else "servers"
        needs = "none" if whose == WORKERS else f"{len(content['states'])} of them"
        raise MXNetError(
            f"{path} holds the optimizer states of {has}: load them in a job that has {needs}"
        )
    return content["states"], content["optimizer"]


def unpickled(states: bytes) -> tuple[dict, opt.Optimizer]:
    """What get_states(dump_optimizer=True) gave, also of servers, which know no NumPy arrays."""
    with mx.util.np_array(False), mx.util.np_shape(False):
        return pickle.loads(states)


def _foreign(path: str) -> str:
    return f"{path} holds no optimizer states of a distributed store"


def load_trainer(trainer: gluon.Trainer, states: bytes) -> None:
    """Make a Trainer's optimizer what its updater's get_states(dump_optimizer=True) gave, with its
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
