"""C++ for CPUs: blocks of elements, in code for each instruction set."""
