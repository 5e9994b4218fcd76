"""SeCoPa: per gradient, whether to compress it and into how many partitions to cut it.

:mod:`~hipress.secopa.sosp21` is the published cost model, :mod:`~hipress.secopa.model` the one
for measured clusters; :mod:`~hipress.secopa.profiles` holds what is known of a cluster,
:mod:`~hipress.secopa.planner` decides, and :mod:`~hipress.secopa.plan` reads and writes plans.
"""
