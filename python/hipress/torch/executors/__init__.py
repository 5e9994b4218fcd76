"""What runs a bucket's graphs: the native engine, the CUDA executor, the user's process group."""
