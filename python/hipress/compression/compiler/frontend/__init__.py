"""Frontend: reads an algorithm's text, and lowers it to typed IR."""
