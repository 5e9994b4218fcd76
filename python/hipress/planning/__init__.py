"""SeCoPa: which gradients to compress, and into how many partitions to cut each of them.

What belongs here: models of cost, and plans made before training. What does not: measurements in
a running job (:mod:`hipress.autotune`), and simulated jobs (:mod:`hipress.simulator`)::

    profile of a cluster ---> cost of a gradient, both ways, for each K ---> plan: name,size,y|n,K

:mod:`profiles` holds what is known of a cluster, :mod:`cluster` the speeds of its hosts and links,
and the engine's limits for messages that small gradients share. :mod:`curve` and :mod:`fitting` fit
curves to measurements. :mod:`model` is the cost model for measured clusters, :mod:`sosp21` the
published one. :mod:`planner` decides; :mod:`plan` reads and writes plans.
"""
