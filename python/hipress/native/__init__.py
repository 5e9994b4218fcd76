"""Binding of the native library (include/hipress/c_api.h): its functions, structs and memory.

Code that calls C belongs here. The meaning of a call for a job, a key or a codec belongs to the
packages that use this one.
"""
