"""Optimizers and their states as servers and files hold them."""

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
    """Return a copy of an optimizer that keeps its Gluon multipliers, which pickling drops."""
    copy = pickle.loads(pickle.dumps(optimizer))
    for index, param in (optimizer.param_dict or {}).items():
        copy.lr_mult[index] = param.lr_mult
        copy.wd_mult[index] = param.wd_mult
    return copy


SERVERS, WORKERS = "servers", "workers"
"""Owners of optimizer states. Servers hold parts of keys, without shapes."""


def write(path: str, states: list[bytes], with_optimizer: bool, of: str = WORKERS) -> None:
    """Replace a file of optimizer states atomically.

    Args:
        path: The file.
        states: Results of mxnet.optimizer.Updater.get_states: one per server, or one for all
            workers.
        with_optimizer: Whether these contain the optimizer itself.
        of: Owner of the states, SERVERS or WORKERS.
    """
    about = {"format": _FORMAT, "states": states, "optimizer": with_optimizer, "of": of}
    content = pickle.dumps(about)
    try:
        files.write(path, "optimizer states", content)
    except files.FileError as error:
        raise MXNetError(str(error)) from error


def read(path: str, of: str = WORKERS) -> tuple[list[bytes], bool]:
    """Read the states from a file that :func:`write` made."""
    try:
        content = pickle.loads(Path(path).read_bytes())
        known = content["format"] == _FORMAT
        whose = content.get("of", of)  # old files have no owner
    except OSError as error:
        raise MXNetError(f"cannot read the optimizer states {path}: {error.strerror}") from error
    except Exception as error:  # unpickling foreign content can raise anything
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
    """Return the states and the optimizer from get_states(dump_optimizer=True).

    This also works for servers' states, which contain no NumPy arrays.
    """
    with mx.util.np_array(False), mx.util.np_shape(False):
        return pickle.loads(states)


def _foreign(path: str) -> str:
    return f"{path} holds no optimizer states of a distributed store"


def load_trainer(trainer: gluon.Trainer, states: bytes) -> None:
    """Restore a Trainer's optimizer, schedule and counts from get_states(dump_optimizer=True).

    The optimizer and the schedule stay the same objects, because the script may also use them.
    """
    load_optimizer(trainer.optimizer, trainer._updaters, states)


def load_optimizer(
    optimizer: opt.Optimizer, updaters: Iterable[opt.Updater], states: bytes
) -> None:
    """Restore an optimizer and its updaters, one per device, as :func:`load_trainer` does."""
    loaded_states, loaded = pickle.loads(states)
    schedule = optimizer.lr_scheduler
    about = {name: value for name, value in vars(loaded).items() if name != "param_dict"}
    if schedule is not None and type(schedule) is type(loaded.lr_scheduler):
        vars(schedule).update(vars(about.pop("lr_scheduler")))
    vars(optimizer).update(about)
    for updater in updaters:
        updater.states = dict(loaded_states)
        updater.states_synced = dict.fromkeys(loaded_states, False)
