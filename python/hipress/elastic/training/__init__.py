"""Training in one view after another, for any framework: steps that can be rolled back.

What belongs here: which step counts, what a new worker copies, and what becomes of a residual. What
does not: agreement on views (:mod:`hipress.elastic.membership`), tensors and process groups.

A framework provides a :class:`~hipress.elastic.training.state.State`, which says what training
consists of, and a :class:`~hipress.elastic.training.session.Session`, which connects the workers of
a view. :class:`~hipress.elastic.training.arrays.ArraySession` is one for gradients in NumPy arrays.

**A step that failed here may count.** A worker that dies in an all-reduce leaves the rest with
different results: some have the sum, some do not. A worker without the sum does not know which. So
it keeps its compression as *undecided* (``Carried.undecided``) until the next view meets::

    rank 0   sends gradient ... receives sum ... updates weights   "I have completed 72"
    rank 1   sends gradient ... error                              undecided: "... 71"
    rank 2   sends gradient ... dies

    next view: a rank has completed 72   rank 1 copies that rank's state, and commits: what it
                                         sent is in the sum, so its residual stays the new one
               no rank has               all roll back: residuals return to those before the
                                         step, and the training function repeats the step

A rank is at most one step behind, because a step needs all ranks. :mod:`.loop` calls the training
function for each view and keeps the undecided compression. ``Session.put_back`` and
``Carried.copy`` decide.

**Outer steps.** With ``sync_every`` the step that can fail is an outer step of DiLoCo after H
inner steps (:mod:`.outer_steps`, :mod:`.outer_step_session`). If it fails, the workers that
trained for it repeat it, in a separate job if other workers have joined. With a delay it starts
after H inner steps, and is completed some inner steps later.

**Gradients in NumPy arrays.** :mod:`.sums` synchronizes them for MXNet and TensorFlow, and keeps
and rolls back residuals as PyTorch's synchronizer does. :mod:`.tuned_sums` chooses their method
with type "auto". :mod:`.journal` writes a line of JSON for each event, :mod:`.news` the line that
rank 0 prints, and :mod:`.stuck` ends a worker whose training function hangs, also if
it holds Python's lock (``src/common/life_watch.cc``).
"""
