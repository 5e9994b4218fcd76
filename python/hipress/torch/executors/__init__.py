"""Executors of a bucket's graphs: native engine, CUDA executor, the user's process group."""
