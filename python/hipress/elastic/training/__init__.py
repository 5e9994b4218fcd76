"""Training in one view after another, for any framework: steps that can be rolled back.

What belongs here: which step counts, what a new worker copies, and what becomes of a residual. What
does not: agreement on views (:mod:`hipress.elastic.membership`), and the residuals themselves
(:mod:`hipress.runtime.error_feedback`).

A framework provides two objects, which know nothing of views that fail::

    view_loop    calls the training function in each view, and decides which error ends a view
      session    one view: meet, copy state, make steps, compare weights, end
        TrainingState     of the framework: weights and optimizer state, out and in
        FrameworkAdapter  of the framework: connect workers, send a state to others

:class:`~hipress.elastic.training.arrays.ArrayAdapter` is an adapter for gradients in NumPy arrays,
which MXNet and TensorFlow use. :class:`hipress.torch.elastic.adapter.TorchAdapter` is PyTorch's.

**A step that failed may count.** :mod:`.undecided_step` explains when, with a drawing. It also has
the state that passes from one view to the next.

**Outer steps.** With ``sync_every`` the step that can fail is an outer step of DiLoCo after H
inner steps (:mod:`.outer_steps`). If it fails, the workers that trained for it repeat it, in a
separate job if other workers have joined. With a delay it starts after H inner steps, and is
completed some inner steps later.

**Gradients in NumPy arrays.** :mod:`.sums` synchronizes them in buckets, and :mod:`.tuned_sums`
chooses their method with type "auto". :mod:`.journal` has the lines for users and the journal.
:mod:`.hang_watch` ends a worker whose training function hangs, also if it holds Python's lock
(``src/base/life_watch.cc``).

Vocabulary: a *view* is a set of workers that train together, and its *epoch* is its number.
A worker is *behind* if it must copy the state of the view's *source*.
"""
