"""Optimizers for compressed gradients."""
