"""Binding of the native library (include/hipress/c_api.h): its functions, structs and memory.

Here belongs what calls C. What a call means for a job, a key or a codec belongs to the packages
that use this one.
"""
