"""Makes type "auto" of PyTorch's front ends measure known times, in a rank of a test's job."""

from __future__ import annotations

import logging


def measure(ms, steps=None):
    """Makes gradients take known times.

    :param ms: milliseconds of a step's gradients by a way, as a function of its name
    :param steps: seconds of a step of training while ways are tried, by a way's name; None: the
        trial is over after its first block
    :returns: the lines that are logged from now on
    """
    from hipress.torch.tuning import choice, following
    from hipress.tuning import choice as of_ways

    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)

    def seconds_of(step):
        choice.Step.seconds(step)  # it does work
        return ms(step.way.name) / 1e3

    def timed(self, future):
        if self._follower is not None:
            self._follower.seconds.append(ms(self._follower.way.name) / 1e3)
        return future

    choice._WayStep.seconds = seconds_of
    following.Following.timed = timed
    of_ways.StepTimer.begin_step = lambda timer: (
        None if timer.over
        else timer._trial.add(0.001 if steps is None else steps(timer.way.name))
    )  # fmt: skip
    return lines
