"""Diagnosis of running and failed jobs: dumps, the graph of waiting nodes, reports.

What belongs here: readers of what processes write. Training needs nothing of it. What does not: the
writers, which are in the library (``src/base/debug_dumps.cc``, ``flight_recorder.h``)::

    SIGUSR1 or a wait that is too long --> each process writes a dump: its last events, and
                                           what its flows, store and membership wait for
    hipress debug --> debug.py reads the dumps --> wait_graph.py: node A waits for node B, ...
                  --> debug_report.py: the sentence that names the node to look at

In elastic jobs, the dumps also have what each agent knows
(:mod:`~hipress.diagnostics.elastic_job`): an agent leaves its status with the library, so that a
dump has it even if Python hangs. :mod:`~hipress.diagnostics.report` reads timelines and prints
where the time of a job went.
"""
