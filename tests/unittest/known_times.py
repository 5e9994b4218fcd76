"""Makes type "auto" of PyTorch's front ends measure known times, in a rank of a test's job."""

from __future__ import annotations

import logging


def logged():
    """The lines that HiPress logs from now on, in this process."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)
    return lines


def measure(ms, steps=None):
    """Makes gradients take known times.

    :param ms: milliseconds of a step's gradients by a way, as a function of its name
    :param steps: seconds of a step of training while ways are tried, by a way's name; None: the
        trial is over after its first block
    :returns: the lines that are logged from now on
    """
    from hipress.torch.tuning import choice, following
    from hipress.tuning import choice as of_ways

    lines = logged()

    def seconds_of(step):
        choice.Step.seconds(step)  # it does work
        return ms(step.way.name) / 1e3

    def timer(self):
        self._follower.seconds.append(ms(self._follower.way.name) / 1e3)
        return lambda: None

    choice._WayStep.seconds = seconds_of
    following.Following.timer = timer
    of_ways.StepTimer.begin_step = lambda timer: (
        None if timer.over
        else timer._trial.add(0.001 if steps is None else steps(timer.way.name))
    )  # fmt: skip
    return lines


def measure_store(ms, watched=True):
    """The same for key-value stores, whose trials are over after their first block.

    :param watched: whether the times of steps of training are known, too, and not the clock's
    """
    from hipress.tuning import choice as of_ways
    from hipress.tuning import store

    lines = logged()
    sample = store.StoreMeter._sample

    def sample_of(self, way, size):
        _, count = sample(self, way, size)  # it does work
        return ms(self._ways[way].name) / 1e3 * count / self.elements, count

    store.StoreMeter._sample = sample_of
    of_ways.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    if not watched:
        return lines
    after = store.StoreChoice.after

    def after_known_times(self, keys, results, seconds):
        after(self, keys, results, ms(self.follower.way.name) / 1e3 if self.follower else 0.0)

    store.StoreChoice.after = after_known_times

    begin_step = store.StoreChoice._begin_step

    def begin_at_known_times(self):
        if self.follower:
            self._seconds, self._settled = ms(self.follower.way.name) / 1e3, None
        begin_step(self)

    store.StoreChoice._begin_step = begin_at_known_times
    return lines
