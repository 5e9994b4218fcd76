"""SeCoPa: per gradient, whether to compress it and how many partitions it gets.

:mod:`~hipress.planning.sosp21` is the published cost model, and :mod:`~hipress.planning.model` the
one for measured clusters. :mod:`~hipress.planning.profiles` describes clusters,
:mod:`~hipress.planning.planner` decides, and :mod:`~hipress.planning.plan` reads and writes plans.
"""
