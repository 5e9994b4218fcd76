"""Files, addresses, processes of the host, and checks of values, for all other packages.

What belongs here: code that does not know jobs, codecs and frameworks, and does not need the
native library.
"""
