"""Fixed times for type "auto" of PyTorch's front ends and key-value stores, in a rank of a test's
job."""

from __future__ import annotations

import logging


def logged():
    """Return the lines that HiPress logs from now on, in this process."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)
    return lines


def measure(ms, steps=None, gathers=lambda name: 1.0):
    """Replace the measured times of gradients, and of gathers of weights, by known ones.

    Args:
        ms: Milliseconds of a step's gradients with a method, as a function of its name.
        steps: Seconds of a step of training while methods are tried, by a method's name; None: the
            trial ends after its first block.
        gathers: Milliseconds of a step's gathers with a method, as a function of its name.

    Returns:
        The lines that are logged from now on.
    """
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend, synchronizer
    from hipress.torch.autotune import gathers as gather_frontend

    lines, work = logged(), frontend.Sample.seconds

    def seconds_of_gathers(self, method, sample):
        sample.gather()
        return gathers(method.name) / 1e3 / self._repeats(method)

    def gather_timer(self):
        self._controller.seconds.append(gathers(self.method.name) / 1e3)
        return lambda: None

    gather_frontend.GatherFrontend._seconds = seconds_of_gathers
    gather_frontend.GatherTuner.timer = gather_timer

    def seconds_of(step):
        work(step)
        return ms(step.method.name) / 1e3

    def timer(self):
        self._controller.seconds.append(ms(self._controller.method.name) / 1e3)
        return lambda: None

    frontend.Sample.seconds = seconds_of
    synchronizer.TunedSynchronizer.timer = timer
    trials.StepTimer.begin_step = lambda timer: (
        None
        if timer.over
        else timer._trial.add(0.001 if steps is None else steps(timer.method.name))
    )
    return lines


def measure_store(ms, watched=True):
    """Replace the measured times of key-value stores, whose trials end after their first block.

    Args:
        watched: Whether the times of training steps are also fixed, instead of the clock's.
    """
    from hipress.autotune import store
    from hipress.autotune import trial as trials

    lines = logged()
    sample = store.StoreFrontend.time_gradients

    def sample_of(self, method, size):
        _, count = sample(self, method, size)  # it does work
        return ms(method.name) / 1e3 * count / self.elements, count

    store.StoreFrontend.time_gradients = sample_of
    trials.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    if not watched:
        return lines
    after = store.StoreController.observe_results

    def after_known_times(self, keys, results, seconds):
        known = ms(self.controller.method.name) / 1e3 if self.controller else 0.0
        after(self, keys, results, known)

    store.StoreController.observe_results = after_known_times

    begin_step = store.StoreController._begin_step

    def begin_at_known_times(self):
        if self.controller:
            self._seconds, self._settled = ms(self.controller.method.name) / 1e3, None
        begin_step(self)

    store.StoreController._begin_step = begin_at_known_times
    return lines
