"""CUDA kernels, with the bits of the C++ code."""
