"""Errors that the launcher reports to its user as one sentence."""


class LaunchError(Exception):
    """A job that cannot be started as it was described."""
