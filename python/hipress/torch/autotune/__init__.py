"""The autotuner's front end for PyTorch's process groups (:mod:`hipress.autotune`).

What belongs here: how a method is timed and used on a process group. What does not: which method is
chosen.

:mod:`~hipress.torch.autotune.frontend` times and uses methods on a process group,
:mod:`~hipress.torch.autotune.choice` chooses one before the first step, and
:mod:`~hipress.torch.autotune.synchronizer` uses it in training.
:mod:`~hipress.torch.autotune.gathers` does all of this for the gathers of FSDP2's weights.
:mod:`.hooks` are PyTorch's own methods, :mod:`.optimizers` finds out whether an optimizer supports
error feedback, and :mod:`.reductions` compare numbers between ranks.
"""
