"""What compression must know of MXNet's optimizers."""

from __future__ import annotations

from mxnet import optimizer as opt

from hipress.autotune.methods import MAX_MOMENTUM


def bears_feedback(optimizer: opt.Optimizer) -> bool:
    """Return whether training bears error feedback: SGD does, as it adds gradients up, unless it
    clips what residuals have saved up; of subclasses nothing is known."""
    return (
        type(optimizer) is opt.SGD
        and 0 <= optimizer.momentum <= MAX_MOMENTUM
        and not optimizer.clip_gradient
    )
