"""SeCoPa: per gradient, whether to compress it and into how many partitions to cut it.

:mod:`~hipress.planning.sosp21` is the published cost model, :mod:`~hipress.planning.model` the one
for measured clusters; :mod:`~hipress.planning.profiles` holds what is known of a cluster,
:mod:`~hipress.planning.planner` decides, and :mod:`~hipress.planning.plan` reads and writes plans.
"""
