"""The autotuner's front end for PyTorch's process groups (:mod:`hipress.autotune`).

:mod:`~hipress.torch.autotune.frontend` times and uses methods on a process group,
:mod:`~hipress.torch.autotune.choice` chooses one before the first step, and
:mod:`~hipress.torch.autotune.synchronizer` uses it in training.
"""
