"""The PyTorch face: operators (hipress.torch.ops)."""
