"""Binding of the native library (include/hipress/c_api.h): its functions, structs and memory.

What belongs here: code that calls C. What a call means for a job, a key or a codec belongs to the
packages that use this one.

:mod:`~hipress.native.declarations` reads the functions and structs from the text of the header,
which the library contains. So a function of the C ABI is declared once. To add one, write its line
in the header and its code in ``src/bindings``; Python then calls ``lib.NAME``.
:mod:`~hipress.native.library` loads the library and turns error values into ``HipressError``.
:mod:`~hipress.native.memory` makes NumPy views of other libraries' arrays.
"""
