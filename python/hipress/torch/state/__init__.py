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

A state takes twice the memory then. No checkpoint has the kept part. See :mod:`.error_feedback` and
``src/operator/contrib/state_before.h``. :mod:`.momentum` keeps one more result in the same way.

**Another number of ranks.** :mod:`.carry_over` takes a rank's own residuals to a job with other
ranks, another topology or another codec, without asking any other rank::

    residual of this rank's gradient, or of a partial sum   stays as it is
    residual of a mean over N ranks, on the owner           times N', the new number of ranks:
                                                            the new mean divides by N'
    residual of a rank that died                            lost

:mod:`.checkpoint` saves residuals and momentum by parameter name, and :mod:`.saved` reads them.
A job of another size loads them too if it has all ranks' states: :mod:`.global_state` adds them up.
"""
