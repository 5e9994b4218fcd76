"""The emitter of the C family, whose dialects are C++ and CUDA."""
