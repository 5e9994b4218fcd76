"""Compilation of generated code on this host, its cache by content, and calls of it."""
