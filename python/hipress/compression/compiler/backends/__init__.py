"""Writers of code: C++, CUDA, the frameworks' operators, and the NumPy interpreter."""
