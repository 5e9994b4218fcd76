"""Prints whether codec `chosen` is dense, and whether it is harmless to try."""

from hipress import Compressor
from hipress.autotune.plan_controller import is_harmless

print(Compressor("chosen").dense, is_harmless("chosen", {}))
