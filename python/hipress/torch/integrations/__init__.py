"""How PyTorch's data-parallel wrappers hand their gradients over."""
