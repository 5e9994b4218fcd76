"""Analysis of running or failed jobs: dumps, the graph of waiting nodes, reports.

`hipress debug` reads dumps that processes write, and `hipress report` reads measurements. Training
needs nothing of this package.
"""
