"""Properties of MXNet's optimizers that matter to compression."""

from __future__ import annotations

from mxnet import optimizer as opt

from hipress.autotune.methods import MAX_MOMENTUM


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
