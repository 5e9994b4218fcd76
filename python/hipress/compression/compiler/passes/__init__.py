"""Passes over the IR: some change it, others analyze it for the backends.

:mod:`pipeline` has their order. The verifier runs after each pass. No pass knows a backend.
"""
