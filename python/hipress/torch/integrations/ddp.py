"""Compressed gradients in DistributedDataParallel, by its communication hook."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress.config import AUTO, CompressionConfig
from hipress.errors import HipressError
from hipress.planning.plan import Decision
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.hooks import MEANS
from hipress.torch.autotune.optimizers import TunedOptimizers, tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import Gradient
from hipress.torch.integrations import first_forward
from hipress.torch.integrations.checks import group_of, refuse_replicate
from hipress.torch.private import (
    backward_pass,
    comm_hooks,
    delays_reductions,
    is_stepped_in_backward,
    managed,
    queue_callback,
    reduces_in_python,
)
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start


def compress(
    model: DistributedDataParallel,
    type: str | CompressionConfig = AUTO,
    *,
    topology: str | None = None,
    min_size: int = MIN_SIZE,
    warmup_steps: int = 0,
    devices_per_host: int = 1,
    plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None,
    timeout: float | None = None,
    encode_on: str = "host",
    shared_momentum: float = 0.0,
    optimizer: torch.optim.Optimizer | None = None,
    **params: object,
) -> Compression:
    """Make ``model`` synchronize compressed gradients, averaged over the ranks as before.

    >>> model = DistributedDataParallel(network)
    >>> hipress.torch.compress(model)
    >>> hipress.torch.compress(model, "dgc", ratio=0.001, warmup_steps=500)  # or by name

    Call this on every rank, before the first backward pass.

    Args:
        model: the model, wrapped in DistributedDataParallel
        type: "auto": the ranks measure for some seconds, and choose a method that is safe with the
            optimizer and fast on this network. It may be no compression
            (:meth:`Compression.explain`). Otherwise a codec's name, see :func:`hipress.codecs`;
            "powersgd" (with ``rank=``), see :mod:`hipress.torch.low_rank`; or a
            :class:`hipress.CompressionConfig`, which then sets everything except the timeout
        topology: a name in :data:`hipress.topology.TOPOLOGIES`, such as "ring" (2(N-1) steps, one
            neighbor to send to). Default: "ps" (every rank sums a part of each gradient: 2 steps),
            or with type "auto" the same as "auto": where hosts have several ranks each, the ranks
            measure whether "hierarchical" is faster
        min_size: gradients of fewer elements are not compressed
        warmup_steps: steps in which gradients are not compressed. With dgc, its ratio falls from
            1/4 to ``ratio`` in these steps (with ``warmup=0`` dgc's gradients are also not
            compressed).
        devices_per_host: for a topology that distinguishes hosts ("hierarchical"): ranks on each
            host, which have consecutive numbers; topology "auto" detects it
        plan: a file that ``hipress plan`` wrote: which gradients to compress, and into how many
            parts to partition them; min_size applies to gradients that it does not name. "auto":
            the ranks measure for some seconds from which size on (min_size or more) compression
            pays on this network. Then they try that with gradients of the model's sizes: it must
            not be slower than no compression
        timeout: seconds to wait for another rank; default: the process group's timeout. With
            ``encode_on="device"``, NCCL's own timeout ends a step that hangs instead
        encode_on: for a model on a GPU: "host" encodes gradients on the CPU and sends them over
            HiPress's own connections; "device" encodes them on the GPU and sends them over the
            model's process group of NCCL
        shared_momentum: factor of a running sum. Gradients come as that sum: the factor times the
            previous sum plus the new mean. The sum is what is compressed. Use it for an optimizer
            without momentum (SGD with momentum=0), or for ``FrozenAdamW(..., compression=...)``
            with the value of its beta 1. Accumulate gradients under ``no_sync()``, otherwise
            momentum is applied repeatedly.
        optimizer: for type "auto": the optimizer of the gradients. By default it is detected in its
            first step. With SGD, methods with error feedback are also considered.
        params: the codec's own parameters

    Raises:
        ValueError: on every rank, if any rank's model or setting is wrong or they differ
    """
    refuse_replicate([model], "compress()")
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(
            f"compress() takes a DistributedDataParallel model, not {model.__class__.__name__}: "
            "wrap the model first, and torch.compile() it last (for FSDP2 there is "
            "hipress.torch.compress_fsdp)"
        )
    group = group_of(model.process_group, "compress()")
    parameters = _parameters(model)
    trained = [(name, p) for name, p in parameters if p.requires_grad]

    def make_settings() -> Settings:
        _check_model(model)
        made = Settings.of(
            type,
            params=params,
            topology=topology,
            min_size=min_size,
            warmup_steps=warmup_steps,
            devices_per_host=devices_per_host,
            plan=plan,
            encode_on=encode_on,
            shared_momentum=shared_momentum,
        )
        optimizers.append(tuned_optimizers(made, trained, optimizer))
        return made

    optimizers: list[TunedOptimizers | None] = []
    settings, engine = start(
        make_settings, group, parameters, timeout, optimizer=optimizer, allow_auto_topology=True
    )
    if settings.type != AUTO:
        compression = Compression(settings, engine, group, parameters)
        _register(model, compression)
        return compression
    shapes = {name: tuple(p.shape) for name, p in parameters}
    dtypes = {name: p.dtype for name, p in parameters}
    where = device_of([p for _, p in parameters])
    with current(where):
        feedback = None if optimizer is None else optimizers[0].allow_feedback
        frontend = choose_method(settings, engine, group, where, shapes, dtypes, feedback)
    compression = Compression(frontend.settings_for(), engine, group, parameters)
    compression.tune(frontend, optimizers[0])
    method = frontend.choice.method.name
    if frontend.choice.is_measured:  # otherwise DDP is unmodified
        _register(model, compression)
    else:
        compression.count_steps_of(model, parameters, f"{method}, by auto")
        state = _state_of(model)
        if state is not None:  # DDP calls its hook for each bucket all the same
            state.hook = functools.partial(MEANS[method], group)
    return compression


def _register(model: DistributedDataParallel, compression: Compression) -> None:
    """Make DDP call ``compression`` for each bucket."""
    state = _state_of(model)
    if state is None:
        model.register_comm_hook(compression, hipress_hook)
    else:
        state.hook = compression.hook


def _state_of(model: DistributedDataParallel) -> HookState | None:
    """Return the state with which the user has registered :func:`hipress_hook`, or None."""
    return next((state for state, *_ in comm_hooks(model) if isinstance(state, HookState)), None)


def _parameters(model: DistributedDataParallel) -> list[tuple[str, torch.nn.Parameter]]:
    """Return the parameters that are in DDP's buckets, including those that were frozen since."""
    named = [
        (name, p)
        for name, p in model.module.named_parameters()
        if name not in model.parameters_to_ignore
    ]
    if all(p.requires_grad for _, p in named):
        return named
    inside = set(map(id, managed(model)))
    return [(name, p) for name, p in named if id(p) in inside]


def _check_model(model: DistributedDataParallel) -> None:
    """Refuse sparse gradients, and modes in which DDP uses its own hooks or never calls a hook."""
    for name, module in model.module.named_modules():
        if getattr(module, "sparse", False) and hasattr(module, "num_embeddings"):
            raise ValueError(
                f"module {name!r} has sparse gradients, which cannot be compressed: make it with "
                "sparse=False"
            )
    if model.mixed_precision is not None:
        raise ValueError(
            "this model has DDP's mixed_precision, which has a communication hook of its own: "
            "leave it out and compute under torch.autocast() instead"
        )
    early = [name for name, p in model.module.named_parameters() if is_stepped_in_backward(p)]
    if early:
        raise ValueError(
            f"parameter {early[0]!r} has an optimizer in the backward pass, for which DDP has a "
            "communication hook of its own: call an optimizer's step() after backward() instead"
        )
    if reduces_in_python(model):
        raise ValueError(
            "this model was made with torch._dynamo.config.optimize_ddp of 'python_reducer', which "
            "averages gradients without DDP's buckets: set it to True before the model is wrapped"
        )
    if delays_reductions(model):
        raise ValueError(
            "DDP all-reduces delay_all_reduce_named_params by itself, uncompressed: leave it out"
        )
    own = [state for state, *_ in comm_hooks(model) if not isinstance(state, Detached)]
    if own and not getattr(own[0], "is_starting", False):
        raise ValueError("this model has a communication hook already; DDP takes one")


class Detached:
    """Mark in a copy of a model that the original's gradients are compressed.

    The copy's gradients are not, until compress() is called with it, because DDP does not copy a
    communication hook.
    """


class Compression(TunedSynchronizer):
    """Compression of a model, with its state. :func:`compress` returns it.

    ``state_dict()`` and ``load_state_dict()`` keep residuals, momentum and step; see
    :mod:`hipress.torch.state.checkpoint`.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._waiting: list[torch.futures.Future] = []
        self._counted: dict[tuple[int, int, int], tuple[Gradient, ...]] = {}
        """Gradients of buckets that DDP synchronizes by its own methods.

        Keys are the bucket's index, address and length.
        """

    def count_steps_of(
        self,
        model: DistributedDataParallel,
        parameters: Sequence[tuple[str, torch.nn.Parameter]],
        why: str,
    ) -> None:
        """Count the gradients of a model that DDP synchronizes without a communication hook.

        A backward pass is counted if it gives the first trained parameter a gradient. ``why`` is
        the reason why the gradients are not compressed.
        """
        by_size: dict[int, list[Gradient]] = {}
        for name, p in parameters:
            by_size.setdefault(p.element_size(), []).append(Gradient(name, 0, p.numel()))
        entries = [(tuple(gradients), size) for size, gradients in by_size.items()]
        traffic, found = self._traffic, weakref.ref(model)

        def count(_: torch.Tensor) -> None:
            of = found()
            if of is not None and of.require_backward_grad_sync:
                for gradients, size in entries:
                    traffic.add(gradients, size, why)

        first = next((p for _, p in parameters if p.requires_grad), None)
        if first is not None:
            handle = first.register_post_accumulate_grad_hook(count)
            # Parameters may outlive the DDP model that wraps them.
            weakref.finalize(model, handle.remove).atexit = False

    def __reduce__(self) -> tuple:
        # Models are copied (AveragedModel) and pickled; connections cannot be.
        return Detached, ()

    def _shape(self, parameter: torch.nn.Parameter) -> tuple[int, ...]:
        # In DDP's buckets gradients have their parameters' strides: w.t() is stored there as w is.
        strides = zip(parameter.stride(), parameter.shape)
        return tuple(size for _, size in sorted(strides, key=lambda of: -of[0]))

    def hook(self, bucket: dist.GradBucket) -> torch.futures.Future:
        """Start to synchronize a bucket, whose gradients the backward pass has computed."""
        flat = bucket.buffer()
        if flat.is_sparse:
            error = HipressError("sparse gradients cannot be compressed: use sparse=False")
            raise self.engine.fail(error, f"bucket {bucket.index()}")
        if bucket.index() == 0:  # the first one of this backward pass
            self._waiting = []  # futures of a backward pass that another error ended
            if self.step < 2:  # DDP makes new buckets after its first step
                self._counted = {}
            self.begin_step()
            if backward_pass() >= 0:  # not so where join() takes part for a rank without inputs
                queue_callback(self._finish)
        if self.framework_method:
            # Counting must not slow down DDP's own methods, so a bucket keeps its gradients.
            key = bucket.index(), flat.data_ptr(), flat.numel()
            if key not in self._counted:
                self._counted[key] = self._gradients(bucket, flat)
            future = self.start_by_framework(bucket, self._counted[key], flat.element_size())
        else:
            gradients = self._gradients(bucket, flat)
            future = self.start_bucket(flat, gradients, f"bucket {bucket.index()}")
            self._waiting.append(future)
        if bucket.is_last():
            self.step += 1
        return future

    def _gradients(self, bucket: dist.GradBucket, flat: torch.Tensor) -> tuple[Gradient, ...]:
        start = flat.storage_offset()
        try:
            return tuple(
                Gradient(self.names[id(p)], gradient.storage_offset() - start, gradient.numel())
                for p, gradient in zip(bucket.parameters(), bucket.gradients())
            )
        except KeyError:
            raise HipressError(
                "this bucket is of another model: a HookState is for one DistributedDataParallel "
                "model, so make one for each"
            ) from None

    def _finish(self) -> None:
        """Wait for all buckets, and raise the original error, which DDP would hide."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            self.wait(future)
        self.poll()


class HookState:
    """State for :func:`hipress_hook`, DDP's own way to take a communication hook.

    >>> model = DistributedDataParallel(network)
    >>> model.register_comm_hook(hipress.torch.HookState(), hipress.torch.hipress_hook)

    The state finds its model. In the first forward pass after which DDP synchronizes gradients, it
    calls :func:`compress` with the model, so that pass raises compress()'s errors.

    Args:
        type: "auto" or a name, see :func:`compress`
        settings: other arguments of :func:`compress`
    """

    def __init__(self, type: str | CompressionConfig = AUTO, **settings: Any) -> None:
        self._type, self._settings = type, settings
        self._saved: Mapping[str, Any] | None = None
        """State to load when the compression begins."""
        self.compression: Compression | None = None
        """The model's :class:`Compression`, or None before the first forward pass."""
        self.is_starting = False
        """Whether compress() is in progress."""
        self.hook: Callable[[dist.GradBucket], torch.futures.Future] = _refuse
        first_forward.watch(self, HookState._start)

    def _start(self, model: DistributedDataParallel) -> bool:
        """Compress the model if this is its state. Return whether it is."""
        if not any(state is self for state, *_ in comm_hooks(model)):
            return False
        self.is_starting = True
        try:
            self.compression = compress(model, self._type, **self._settings)
        finally:
            self.is_starting = False
        if self._saved is not None:
            self.load_state_dict(self._saved)
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's residuals, momentum and step, see :meth:`Compression.state_dict`.

        Raises:
            RuntimeError: if there was no training step yet
        """
        if self.compression is None:
            raise RuntimeError("this state has nothing to save before the first training step")
        return self.compression.state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load a state, see :meth:`Compression.load_state_dict`.

        Before the first forward pass the state is only stored, and that pass loads it.
        """
        self._saved = saved if self.compression is None else None
        if self.compression is not None:
            self.compression.load_state_dict(saved)

    def __reduce__(self) -> tuple:
        # Models are copied (AveragedModel) and pickled; connections cannot be.
        return Detached, ()


def _refuse(_: dist.GradBucket) -> torch.futures.Future:
    """Raise an error, because no forward pass has started the compression."""
    raise HipressError(
        "HookState found no model: register each state with one DistributedDataParallel model, "
        "before its first forward pass, and call the model itself, not its forward()"
    )


def hipress_hook(state, bucket):
    """Synchronize a bucket of DDP, which calls this, and shows its name in the logging data.

    Args:
        state: a :class:`HookState`
        bucket: the bucket, of ``torch.distributed.GradBucket``
    """
    # Without annotations: DDP compares them with classes, and ours are strings.
    return state.hook(bucket)
