"""Errors that users of the PyTorch front end see."""


class HipressError(RuntimeError):
    """A collective operation failed. The message names the rank at fault."""
