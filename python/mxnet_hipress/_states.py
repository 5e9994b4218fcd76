"""MXNet's optimizers: their states in files, copies for other processes, and error feedback."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.autotune.methods import MAX_MOMENTUM
from hipress.base import files

_FORMAT = "hipress optimizer states 1"
_OWNERS = ("workers", "servers")


def allows_feedback(optimizer: opt.Optimizer) -> bool:
    """Return whether an optimizer supports error feedback.

    SGD does, because it adds gradients up, unless it clips accumulated residuals. Subclasses are
    unknown and count as unsupported.
    """
    return (
        type(optimizer) is opt.SGD
        and 0 <= optimizer.momentum <= MAX_MOMENTUM
        and not optimizer.clip_gradient
    )


def portable(optimizer: opt.Optimizer) -> opt.Optimizer:
    """Return a copy of an optimizer that keeps its Gluon multipliers, which pickling drops."""
    copy = pickle.loads(pickle.dumps(optimizer))
    for index, param in (optimizer.param_dict or {}).items():
        copy.lr_mult[index] = param.lr_mult
        copy.wd_mult[index] = param.wd_mult
    return copy


def write(path: str, states: list[bytes], with_optimizer: bool, of_servers: bool = False) -> None:
    """Replace a file of optimizer states atomically.

    Args:
        path: The file.
        states: Results of mxnet.optimizer.Updater.get_states: one per server, or one for all
            workers.
        with_optimizer: Whether these contain the optimizer itself.
        of_servers: Whether the states are of servers, which hold parts of keys, without shapes.
    """
    owner = _OWNERS[of_servers]
    content = {"format": _FORMAT, "states": states, "optimizer": with_optimizer, "of": owner}
    try:
        files.write(path, "optimizer states", pickle.dumps(content))
    except files.FileError as error:
        raise MXNetError(str(error)) from error


def read(path: str, of_servers: bool = False) -> tuple[list[bytes], bool]:
    """Return the states in a file that :func:`write` made, and whether they have the optimizer."""
    foreign = f"{path} holds no optimizer states of a distributed store"
    try:
        content = pickle.loads(Path(path).read_bytes())
        known, owner = content["format"] == _FORMAT, content["of"]
    except OSError as error:
        raise MXNetError(f"cannot read the optimizer states {path}: {error.strerror}") from error
    except Exception as error:  # unpickling foreign content can raise anything
        raise MXNetError(foreign) from error
    if not known:
        raise MXNetError(foreign)
    states = content["states"]
    if owner != _OWNERS[of_servers]:
        needed = "a job without servers: load them in a job that has none"
        if not of_servers:
            needed = f"servers: load them in a job that has {len(states)} of them"
        raise MXNetError(f"{path} holds the optimizer states of {needed}")
    return states, content["optimizer"]


def unpickled(states: bytes) -> tuple[dict, opt.Optimizer]:
    """Return the states and the optimizer from get_states(dump_optimizer=True).

    This also works for servers' states, which contain no NumPy arrays.
    """
    with mx.util.np_array(False), mx.util.np_shape(False):
        return pickle.loads(states)


def load_optimizer(
    optimizer: opt.Optimizer, updaters: Iterable[opt.Updater], states: bytes
) -> None:
    """Restore an optimizer and its updaters, one per device, from get_states(dump_optimizer=True).

    The optimizer and the schedule stay the same objects, because the script may also use them.
    """
    loaded_states, loaded = pickle.loads(states)
    schedule = optimizer.lr_scheduler
    attributes = {name: value for name, value in vars(loaded).items() if name != "param_dict"}
    if schedule is not None and type(schedule) is type(loaded.lr_scheduler):
        vars(schedule).update(vars(attributes.pop("lr_scheduler")))
    vars(optimizer).update(attributes)
    for updater in updaters:
        updater.states = dict(loaded_states)
        updater.states_synced = dict.fromkeys(loaded_states, False)
