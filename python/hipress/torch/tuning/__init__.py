"""Measurements: which gradients to compress, and how fast all-reduces are."""
