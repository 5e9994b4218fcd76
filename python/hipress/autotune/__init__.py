"""The autotuner: all ranks measure methods to synchronize gradients, agree on one and monitor it.

A *method* is a codec with its parameters, or the framework's own all-reduce (:mod:`methods`). With
type "auto" the ranks go through these stages together:

1. **Measurement** (:mod:`measurement`): before the first step, the front end synchronizes samples
   of the model's gradients by each method. The choice (:mod:`choice`) is the least lossy method
   whose time is within 10% of the fastest.
2. **Trial** (:mod:`trial`): the first steps of training take turns between the choice and methods
   that may be faster, because computation can hide communication.
3. **Training** (:mod:`controller`): at the beginning of each step all ranks agree on its method.
   They change it together when the optimizer does not support error feedback, or a codec is too
   lossy for the gradients (:mod:`quality_guard`). They also do when the network changes
   (:mod:`network_watch`).
4. **Explanation** (:mod:`explanation`): the reasons and times, for ``explain()``, the log,
   ``hipress explain`` and TensorBoard (:mod:`journal`).

A front end implements one protocol (:mod:`frontend`): the maximum and the mean of a few numbers
over all ranks, the time of a sample of gradients by a method, and the use of a method. PyTorch's
process groups (``hipress.torch.autotune``), sums in NumPy arrays
(``hipress.elastic.training.tuned_sums``) and key-value stores (:mod:`store`) implement it.

There are two special cases of the same stages. DiLoCo chooses a method, fragments and a delay for
its outer steps (:mod:`outer_steps`). ``plan="auto"`` keeps the codec, and chooses the size from
which on gradients are compressed (:mod:`plan_controller`).

No module here imports a framework. Cost models and planning without a running job are in
:mod:`hipress.planning`.
"""
