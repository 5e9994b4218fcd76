"""What workers can ask servers for, besides pushes and pulls: heads of commands."""

from __future__ import annotations

import enum


class Head(enum.IntEnum):
    """Head of a command. 0 is MXNet's; ours lie above all that scripts are likely to use."""

    SET_OPTIMIZER = 0
    """Body: pickled optimizer."""
    HAS_OPTIMIZER = 0x48690001
    """Answer: b"1" or b""."""
    GET_STATES = 0x48690002
    """Body: b"1" to include the optimizer. Answer: from mxnet.optimizer.Updater.get_states."""
    SET_STATES = 0x48690003
    """Body: what GET_STATES gave."""
    START_SPARSE = 0x48690004
    """Starts MXNet's own server beside ours. Body: pickled environment of that job."""
