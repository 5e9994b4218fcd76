"""Prints how this process is identified, and waits for a line."""

from hipress.elastic.membership import evidence

process = evidence.this_process()
print(process.boot, process.namespace, process.pid, process.start, sep="\t", flush=True)
input()
