"""From an algorithm's text to typed IR: grammar, syntax tree, names and types."""
