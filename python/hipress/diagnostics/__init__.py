"""What a running or failed job was doing: dumps, the graph of who waits for whom, reports.

`hipress debug` reads the dumps that processes write; `hipress report` reads measurements. Nothing
here is needed to train.
"""
