"""Starts the processes of a job on this machine or on many, and never leaves any behind."""
