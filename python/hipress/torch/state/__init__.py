"""What is remembered from step to step, and its checkpoints."""
