"""State that is kept from step to step: residuals, momentum, and their checkpoints.

What belongs here: what a rank remembers, and how it moves to another job. What does not: the steps
themselves.

**Rolling back a step.** In elastic jobs a step is a transaction. The first encode of a transaction
keeps the state that it reads and writes the new one to other memory, in the pass that it makes
anyway. The two take turns, so nothing is copied::

    before step 72      memory A: residual r     memory B: free
    encode of step 72   reads A                  writes B: residual r'
    commit              A is free                B is the residual
    or roll back        A is the residual again  B is free

A state takes twice the memory then. No checkpoint has the kept part. See
``src/operator/contrib/state_before.h``. :mod:`.momentum` keeps one more result in the same way.

:mod:`hipress.runtime.error_feedback` keeps residuals, for all front ends, and moves them to another
number of ranks. :mod:`.error_feedback` has states on a GPU. :mod:`.checkpoint` saves residuals and
momentum by parameter name, :mod:`.saved` has the format, and :mod:`.merge` adds up the states of
all ranks for a job of another size.
"""
