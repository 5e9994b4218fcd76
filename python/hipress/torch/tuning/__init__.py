"""What is measured: which gradients to compress, and how fast all-reduces are."""
