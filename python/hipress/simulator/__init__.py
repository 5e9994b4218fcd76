"""Simulation of a training step on a cluster that need not exist.

:mod:`~hipress.simulator.engine` runs tasks on hosts with processors and links, event by event.
:mod:`~hipress.simulator.lower` makes such tasks from the graphs of real jobs.
:mod:`~hipress.simulator.symmetric` makes them for thousands of nodes, of which one represents all.
:mod:`~hipress.simulator.models` contains networks' gradients, and :mod:`~hipress.simulator.step`
simulates a training step.
"""
