"""Weights that are synchronised every H steps (DiLoCo), for frameworks whose arrays NumPy can read.

Each worker trains by itself for H *inner* steps. Then the workers average how far they have come,
the *pseudo-gradients*, and an *outer* optimizer makes a step with that mean (Douillard et al.,
arXiv:2311.08105). PyTorch has its own, on tensors (:mod:`hipress.torch.integrations.diloco`); which
fragment travels when is the same code (:mod:`hipress.fragments`).
"""
