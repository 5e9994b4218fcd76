"""Predicted time of a training step on a cluster that you do not have.

What belongs here: the graphs and messages of real jobs, with time in the place of work. What does
not: the decision what to compress (:mod:`hipress.planning`).

:mod:`~hipress.simulator.event_simulation` runs tasks on hosts with processors and links, event
by event. :mod:`~hipress.simulator.lower` makes such tasks of the graphs that real jobs run. For
thousands of nodes one host stands for all.
:mod:`~hipress.simulator.models` has the gradients of well-known networks.
:mod:`~hipress.simulator.step` puts a training step together, and :mod:`~hipress.simulator.rounds`
the steps of DiLoCo.
"""
