"""Elastic training in any framework: one view after another, with steps that can be rolled back.

A framework provides a :class:`~hipress.elastic.training.state.State`, which holds the state of
training, and a :class:`~hipress.elastic.training.session.Session`, which connects the workers of a
view. :class:`~hipress.elastic.training.arrays.ArraySession` does that for gradients that are summed
in NumPy arrays.
"""
