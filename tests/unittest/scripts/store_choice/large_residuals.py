"""Residuals of the fastest codec grow too large."""

from common import bits, make, show, train
from hipress.autotune import controller
from known_times import measure_store

lines = measure_store(
    lambda method_name: {"maxminef bits=2": 1.0, "maxminef bits=4": 2.0}.get(method_name, 9.0)
)
controller.MAX_SHARE = 0.25
method_names, got, wanted = train(make(), 40)
show(method_names=method_names, lines=lines, bits=bits(got))
