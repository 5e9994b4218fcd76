"""Local SGD and DiLoCo: workers train alone and average their weights every H steps.

This package is the algorithm, for every front end and for elastic training. It does not know which
framework holds the weights, which codec compresses them, or how many workers there are.

An *inner step* is one step of a worker's own optimizer, without communication. The *outer weights*
are a float32 copy of the weights, which is the same on all workers. An *outer step* follows H inner
steps. It changes the outer weights of one fragment, and then the worker's weights::

    weights of rank 0 ──inner step──inner step── ... ──inner step──┐ w0
    weights of rank 1 ──inner step──inner step── ... ──inner step──┤ w1
                                                                   │
    1. subtract     pseudo-gradient = outer weights - w            │  each rank alone
    2. average      all-reduce, compressed; error feedback keeps   │  all ranks
                    what a codec left out for the next outer step  │
    3. outer step   the outer optimizer (SGD with Nesterov         │  each rank, same bits
                    momentum, say) uses the mean as a gradient     │
    4. update       weights = alpha w + (1 - alpha) outer weights  ▼  each rank alone
    weights of both ranks ──inner step── ...

A *fragment* is a run of neighboring weights. Fragment i of n has its outer step after inner step (i
+ 1) H / n of every H, so that fewer bytes travel at once. With a *delay* of D, the average of a
fragment runs while the worker makes D more inner steps (overlap). Steps 3 and 4 follow after these.
*alpha* is the share of its weights that a worker keeps then, because it has trained while the
average ran. In *early steps*, all fragments are averaged more often and without the outer
optimizer, because workers differ most at the beginning (post-local SGD).

If any worker's pseudo-gradient has a NaN or Inf, there is no outer step on any worker. The weights
of all fragments return to the outer weights, because one NaN has reached all fragments of that
worker.

Local SGD is the case of an outer optimizer SGD with learning rate 1 and no momentum.

**Cost.** For m weights: 4m bytes of outer weights and 4m bytes of pseudo-gradients in memory, plus
the outer optimizer's state. Every H inner steps, each worker sends what an all-reduce of m
gradients sends with the same codec. Steps 1, 3 and 4 each pass over the fragment once. PyTorch's
pseudo-gradients are computed and averaged in place, without another copy.

**Modules.** :mod:`schedule` determines the inner step after which a fragment starts.
:mod:`fragment_scheduler` counts inner steps, and starts and completes fragments. :mod:`outer` does
steps 1 to 4, by three small objects of a front end: ``Weights`` (read and write the framework's
arrays), ``OuterOptimizer`` and ``Average`` (the all-reduce). :mod:`arrays` and :mod:`node_job` are
these for frameworks whose arrays NumPy can read. Elastic jobs make one outer step at a time, which
can fail and be repeated: see :mod:`hipress.elastic.training.outer_steps`.

Sources: Stich, Local SGD, ICLR 2019; Lin et al., post-local SGD, ICLR 2020, arXiv:1808.07217;
Douillard et al., DiLoCo, arXiv:2311.08105, and Streaming DiLoCo, arXiv:2501.18512; Sarfi et al.,
SparseLoCo, arXiv:2508.15706.
"""
