"""Errors that the launcher reports to its user as one sentence."""


class LaunchError(Exception):
    """Error for a job that cannot be started with its description."""
