"""State that is kept from step to step, and its checkpoints."""
