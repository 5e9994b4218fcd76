"""Prints whether codec `chosen` is dense, and whether it is harmless to try."""

from hipress import Compressor
from hipress.secopa.trial import is_harmless

print(Compressor("chosen").dense, is_harmless("chosen", {}))
