"""Gradient compression for distributed training: codecs, synchronisation graphs, a kvstore."""
