"""What every other package may use: files, addresses, the host's processes, checks of values.

Here belongs what knows nothing of jobs, codecs and frameworks, and needs no native library.
"""
