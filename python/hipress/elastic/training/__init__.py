"""Elastic training whatever the framework: a view after another, steps that are put back.

A framework brings a :class:`~hipress.elastic.training.state.State`, which says what training
consists of, and a :class:`~hipress.elastic.training.session.Session`, which connects the workers of
a view. :class:`~hipress.elastic.training.arrays.ArraySession` does that for gradients that are
summed in NumPy arrays.
"""
