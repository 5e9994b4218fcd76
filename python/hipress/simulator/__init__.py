"""Predicts how long a training step takes on a cluster that need not be there.

:mod:`~hipress.simulator.engine` runs tasks on hosts with processors and links, event by event;
:mod:`~hipress.simulator.lower` makes such tasks of the graphs that real jobs run;
:mod:`~hipress.simulator.symmetric` makes them for thousands of nodes, of which one stands for all;
:mod:`~hipress.simulator.models` knows networks' gradients, and :mod:`~hipress.simulator.step` puts
a training step together.
"""
