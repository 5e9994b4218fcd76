"""Integrations with PyTorch's data-parallel wrappers, which hand their gradients over."""
