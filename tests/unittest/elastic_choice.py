"""Elastic jobs of type "auto" on NumPy arrays: shared code of their programs and tests."""

import os
import signal
import sys

from harness.elastic import ElasticJob
from harness.processes import wait_until

MS = {
    "uncompressed": 900.0,
    "lossless": 800.0,
    "bf16": 500.0,
    "maxmin bits=8": 300.0,
    "maxmin bits=4": 3.0,
    "maxminef bits=4": 20.0,
}
"""Milliseconds of gradients with each method; other methods take 1000."""
METHOD_NAMES = {"gradients": "maxminef", "store": "maxminef", "adam": "maxmin", "rounds": "maxmin"}
"""Methods that the fixed measurements choose, by kind of program."""


class FakeTimes:
    """Fixed times of gradients in this process, and a record of what is measured."""

    def __init__(self):
        from hipress.autotune import outer_steps
        from hipress.elastic.training import tuned_sums

        self.measured, self._sample = 0, tuned_sums.TunedSums.time_gradients
        tuned_sums.TunedSums.time_gradients = lambda sums, method, size: self.sample(
            sums, method, size
        )
        outer_steps.OuterStepController.record_travel = self.took
        outer_steps.OuterStepController._step_seconds = lambda choice: 0.1
        start = tuned_sums.TunedGradients.start

        def timed(sums, of):
            future = start(sums, of)
            if sums._controller is not None:
                future.add_done_callback(lambda _: self.pretend(sums._controller))
            return future

        tuned_sums.TunedGradients.start = timed

    @staticmethod
    def pretend(controller):
        controller.seconds[:] = [MS.get(controller.method.name, 1000.0) / 1e3]

    @staticmethod
    def took(tuner, fragment, seconds):
        tuner._travel[fragment] = MS[tuner.method.name] / 1e3

    def sample(self, sums, method, size):
        self.measured += 1
        if self.measured == 5 and os.environ["HIPRESS_ELASTIC_SLOT"] == os.environ.get("VICTIM"):
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
        _, elements = self._sample(sums, method, size)
        return MS.get(method.name, 1000.0) / 1e3, elements

    def say(self, state, step):
        """Print a line about every tenth completed step."""
        if step % 10 == 0 and state.session is not None:
            type = state.session.compression.config.type
            print("step", step, type, "measured", self.measured, flush=True)


def lines(job, slot):
    """Return what the slot's present process has printed about its steps."""
    text = job.output(job.present(slot))
    return [line.split() for line in text.splitlines() if line.startswith("step ")]


def start(script, kind, **env):
    """Start three workers of a script, which may import this module.

    Args:
        env: Additional environment variables.
    """
    env["PYTHONPATH"] = os.pathsep.join([*sys.path, os.path.dirname(__file__)])
    return ElasticJob([sys.executable, str(script), kind], 3, env=env)


def check_that_the_choice_stays(job, method_name):
    """Check that the remaining workers and those that join keep the choice after a death, and that
    none measures again. All have the same weights, as the workers themselves compare.

    Args:
        job: Three workers, which have just been started.
    """
    with job:
        wait_until(lambda: job.step(1) >= 20, 120, "20 steps")
        job.kill(1)
        wait_until(lambda: job.step(0) >= 60, 120, "60 steps")
        copied = job.copies(1)
        job.restart(1)
        wait_until(lambda: job.copies(1) > copied, 90, "a copy")
        reached = job.step(0)
        wait_until(lambda: job.step(1) >= reached + 30, 120, "30 steps of all")
        for slot in range(3):
            said = lines(job, slot)
            assert {line[2] for line in said[-2:]} == {method_name}, (said, job.report())
            counts = {line[4] for line in said[1:]}
            assert len(counts) == 1 and ("0" in counts) == (slot == 1), said


def check_a_death_while_they_measure(script, kind):
    with start(script, kind, VICTIM="2", SIGNAL=str(int(signal.SIGKILL))) as job:
        wait_until(lambda: min(job.step(0), job.step(1)) >= 30, 90, "30 steps of two")
        for slot in (0, 1):
            assert lines(job, slot)[-1][2] == METHOD_NAMES[kind], (lines(job, slot), job.report())
