"""A less lossy method is about as fast as the fastest.

Arguments: both, and by how much the second is faster in training.
"""

import sys

import hipress.autotune.trial as trials
from common import bits, make, show, train
from known_times import measure_store

less_lossy, fast = sys.argv[1:3]
lines = measure_store(lambda method_name: {less_lossy: 10.5, fast: 10.0}.get(method_name, 30.0))
steps = {less_lossy: 0.02 * float(sys.argv[3]), fast: 0.02}
trials.StepTimer.begin_step = lambda timer: (
    None if timer.over else timer._trial.add(steps.get(timer.method.name, 9.0))
)
method_names, got, wanted = train(make(), 80)
show(method_names=method_names, lines=lines, bits=bits(got), said=[])
