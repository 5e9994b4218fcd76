"""The error that front ends raise when a job fails."""


class HipressError(RuntimeError):
    """The job failed, or a call was wrong; the message is a sentence for the user."""

    __module__ = "hipress.node"  # where users import it from, and so what they read in a traceback
