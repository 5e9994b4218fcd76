"""Folder of libhipress_cuda.so, the CUDA code of the hipress package of the same version."""
