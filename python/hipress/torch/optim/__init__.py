"""Optimizers for compressed gradients: AdamW whose denominators stay fixed after a warm-up."""
