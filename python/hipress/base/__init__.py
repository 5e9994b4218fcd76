"""Helpers for every other package: files, addresses, the host's processes, checks of values.

Code that needs no jobs, codecs, frameworks or native library belongs here.
"""
