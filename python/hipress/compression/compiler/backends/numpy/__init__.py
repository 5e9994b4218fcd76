"""The interpreter in NumPy: what compiled code must equal, bit for bit."""
