"""The error that front ends raise when a job fails, and the one without their framework."""


CAME_LATE = 79
"""What an elastic worker that waited to take part ends with, for its launcher, if the others have
come to the end of training; they may still save. No status of sysexits.h or of a shell's."""


class HipressError(RuntimeError):
    """The job failed, or a call was wrong; the message is a sentence for the user."""

    __module__ = "hipress.node"  # where users import it from, and so what they read in a traceback


def not_installed(error: ModuleNotFoundError, framework: str, sentence: str) -> ImportError:
    """What to raise when the import of a framework fails: the sentence, if it is not installed.

    :param error: what the import raised; it is returned if the framework lacks something itself
    """
    if error.name != framework:
        return error
    return ModuleNotFoundError(sentence, name=framework)
