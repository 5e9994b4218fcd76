"""Key-value store whose workers may join and leave, for scripts that are not written for that.

In a job of ``hipress launch --elastic --hipress``, ``mx.kv.create("dist_sync")`` makes it. Weights
and their optimizer are on every worker, and a *step* is one push of each key:

1. The first step shows which keys belong to a step. Nothing is summed.
2. In the second step the process joins the job. It copies weights, optimizer and step from another
   worker; in a new job all copy those of slot 0. Its gradients belong to other weights and are
   discarded.
3. From then on the last push of a step sums all gradients over the workers, and the optimizer makes
   its step. If a worker dies meanwhile, the remaining workers roll back error feedback and sum
   again. A joining worker takes part from the next step on.

Calls block where MXNet's stores do not: the last push of a step returns when the weights are known.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import NoReturn

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.autotune.explanation import Explanation
from hipress.config import CompressionConfig
from hipress.dtypes import NAMES
from hipress.elastic.membership import settings
from hipress.elastic.training import journal, view_loop
from hipress.elastic.training.arrays import ArrayAdapter
from hipress.errors import HipressError
from hipress.runtime.process_end import ProcessEnd
from mxnet_hipress import _states
from mxnet_hipress._errors import sentences
from mxnet_hipress._keys import Key, KeyTable, group, spread
from mxnet_hipress._store import Store
from mxnet_hipress._store_state import StoreState

_END_SECONDS = 5.0
"""Seconds that a worker whose script has ended waits until the other workers have the last
result."""


def is_asked_for() -> bool:
    """Return whether this process is a worker of an elastic job."""
    return bool(os.environ.get("HIPRESS_ELASTIC_AGENTS"))


class ElasticStore(Store):
    """Synchronous store of dense float32 and float16 keys, each of which every step pushes.

    ``rank`` is this worker's slot and ``num_workers`` the number of slots, however many workers are
    present. A restarted worker therefore has the same share of the data. Sums are scaled to that
    number, so a script may divide by it. ``barrier`` returns at once, because no worker can wait
    for one that joins later.

    Args:
        name: The store's type as scripts see it, for example "dist_sync".
    """

    def __init__(self, name: str) -> None:
        if "async" in name.lower():
            raise MXNetError(f"an elastic job has no asynchronous store: use dist_sync, not {name}")
        super().__init__(name)
        with sentences():
            self._settings = settings.from_environment()
            self._state = StoreState(len(self._settings.agents))
        self._keys = KeyTable(0)
        self._pushed: dict[int, Key] = {}  # of this step
        self._pulled: list[tuple[Key, list[mx.nd.NDArray]]] = []  # before the end of the step
        self._steps, self._job, self._over = 0, None, False
        self._end = ProcessEnd(self, at_once=False)
        _stores.append(self)

    # ---- Values ----------------------------------------------------------------------------------

    def init(self, key: object, value: object) -> None:
        """Initialize keys with this worker's values, which the job's values replace later.

        Raises:
            MXNetError: For a key that exists or is not dense, another dtype, or after the first
                push.
        """
        for user_key, arrays in group(key, value):
            if len(arrays) != 1:
                raise MXNetError(f"init of key {user_key!r} takes one value, got {len(arrays)}")
            new = self._keys.new(user_key, arrays[0])
            if new.sparse or NAMES[new.dtype] not in ("float32", "float16"):
                what = "row_sparse" if new.sparse else NAMES[new.dtype]
                raise MXNetError(
                    f"key {user_key!r} is {what}; an elastic store sums dense float32 and float16"
                )
            if self._pushed or self._steps:
                raise MXNetError(f"key {user_key!r} comes after the first push: init all before it")
            self._state.weights_of[new.index] = arrays[0].as_nd_ndarray().copyto(mx.cpu())
            self._keys.add(new)

    def push(self, key: object, value: object, priority: int = 0) -> None:
        """Store gradients, summed over devices. The last push of a step sums all over the workers.

        Raises:
            MXNetError: For unknown keys, other shapes or dtypes than at init, a key pushed twice in
                a step, or too few workers.
        """
        for user_key, arrays in group(key, value):
            self._push(self._keys.get(user_key, "push"), arrays)

    def pull(
        self, key: object, out: object = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Pull weights into every array of `out`.

        If this step has already pushed the key, the arrays are written at the end of the step.
        """
        if out is None:
            raise MXNetError("pull needs out, the arrays to pull into")
        for user_key, arrays in group(key, out):
            entry = self._keys.get(user_key, "pull")
            entry.check_dense(arrays)
            if self._steps and entry.index in self._pushed:
                self._pulled.append((entry, arrays))
            else:
                spread(self._state.weights_of[entry.index], arrays)

    def pushpull(self, key: object, value: object, out: object = None, priority: int = 0) -> None:
        """Push values and pull into `out`, which holds the weights at the end of the step."""
        values = group(key, value)
        every = values if out is None else group(key, out)
        for (user_key, arrays), (_, outs) in zip(values, every):
            entry = self._keys.get(user_key, "push")
            entry.check_dense(outs)
            self._push(entry, arrays, outs)

    def row_sparse_pull(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise MXNetError: there are no row_sparse keys."""
        raise MXNetError("an elastic store has no row_sparse keys")

    # ---- Steps -----------------------------------------------------------------------------------

    def _push(
        self, key: Key, arrays: list[mx.nd.NDArray], outs: list[mx.nd.NDArray] | None = None
    ) -> None:
        total = key.total(arrays)
        if key.index in self._pushed and not self._steps:
            self._begin()
        self._check(key)
        self._pushed[key.index] = key
        if outs is not None:
            self.pull(key.user_key, outs)
        if not self._steps:
            return
        if self._steps > 1 and not self._over:
            gradient = self._state.gradients[key.index]
            total.as_nd_ndarray().reshape(gradient.shape).copyto(gradient)
        if len(self._pushed) == len(self._state.gradients):
            self._complete()

    def _check(self, key: Key) -> None:
        state = self._state
        if not self._steps:
            return
        if key.index not in state.gradients:
            raise MXNetError(
                f"key {key.user_key!r} was not pushed in the first step; in an elastic job every "
                "step pushes the same keys"
            )
        if key.index in self._pushed:
            missing = next(index for index in state.gradients if index not in self._pushed)
            raise MXNetError(
                f"key {key.user_key!r} is pushed again before key {state.names[missing]}, which "
                "every step pushes; in an elastic job a step is one push of each key"
            )

    def _begin(self) -> None:
        """Join the job after the first step, whose keys are those of every step."""
        state = self._state
        if state.updater is None:
            raise MXNetError(
                "an elastic store holds the weights, and needs their optimizer: call set_optimizer "
                "before the first push (a Trainer and a Module do but for update_on_kvstore=False)"
            )
        for index, key in sorted(self._pushed.items()):
            state.names[index] = repr(key.user_key)
            state.gradients[index] = mx.nd.zeros_like(state.weights_of[index])
        self._pushed = {}
        with sentences():
            state.config.check_sums(list(state.names.values()))
            self._job = view_loop.ElasticProcess(state, ArrayAdapter)
            self._go_on_to(0)
        self._steps = 1

    def _complete(self) -> None:
        """End a step: compute the weights of all workers, and write them to the pulled arrays."""
        if not self._over and self._steps > 1:
            with sentences():
                self._go_on_to(self._state.step + 1)
        self._steps += 1
        self._pushed = {}
        pulled, self._pulled = self._pulled, []
        for key, arrays in pulled:
            spread(self._state.weights_of[key.index], arrays)

    def _go_on_to(self, step: int) -> None:
        """Make the step, again if a worker dies, until this worker has its result and a view."""
        state, job = self._state, self._job
        while state.step < step or state.session is None:
            session = state.session
            try:
                if session is None:
                    job.enter()
                    self._end.precede()  # the view's node would also say goodbye
                else:
                    state.make_step()
            except Exception as error:
                if isinstance(error, HipressError) and session is not None and session.is_over():
                    self._over = True
                    job.leave()
                    job.close()
                    journal.tell(
                        "training is over, as another worker's script has ended: this one's goes "
                        "on to its own end, and changes no weights",
                        logging.WARNING,
                    )
                    return
                job.go_on_after(error)
                view_loop.forget_frames(error)

    # ---- Settings --------------------------------------------------------------------------------

    def set_gradient_compression(
        self, compression_params: Mapping[str, object] | CompressionConfig
    ) -> None:
        """Compress gradients and their sums.

        Args:
            compression_params: As for other stores, without plan "auto" and servers; before the
                second step.

        Raises:
            MXNetError: For an unknown type or parameter. The message lists the allowed ones.
        """
        if self._job is not None:
            raise MXNetError("an elastic store's compression is set before the second step")
        with sentences():
            config = CompressionConfig.of(compression_params)
            config.check_sums(config.decisions)  # a plan's names are checked with the keys
        self._state.config = config

    def explain(self) -> Explanation:
        """Return the reasons for the current method and the measurements, as a printable object."""
        return self._state.explain()

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Run `optimizer` on every worker's weights, which stay equal bit for bit."""
        if self._job is not None:
            raise MXNetError("an elastic store's optimizer is set before the second step")
        self._state.updater = self._updater = opt.get_updater(optimizer)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states, as stores without servers do. Residuals are not saved."""
        _states.write(fname, [self._optimizer().get_states(dump_optimizer)], dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        """Load states of save_optimizer_states. In a new job, slot 0's apply to all."""
        (states, *_), _ = _states.read(fname)
        self._optimizer().set_states(states)

    def _optimizer(self) -> opt.Updater:
        if self._state.updater is None:
            raise MXNetError("this store has no optimizer: call set_optimizer first")
        return self._state.updater

    # ---- The job ---------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Slot of this worker, from 0."""
        return self._settings.slot

    @property
    def num_workers(self) -> int:
        """Number of slots of the job."""
        return len(self._settings.agents)

    def barrier(self) -> None:
        """Return at once."""

    _barrier = barrier

    def num_dead_node(self, node_id: int = 7) -> int:
        """Return the number of slots without a worker, if `node_id` has the bit of workers (4)."""
        return self.num_workers - self._state.size if self._job and node_id & 4 else 0

    def stats(self) -> dict[str, int]:
        """Return the numbers of this view, of its workers, and of the job's steps so far."""
        state = self._state
        return {"epoch": state.epoch, "workers": state.size, "steps": state.step}

    def _send_command_to_servers(self, head: int, body: str | bytes) -> NoReturn:
        raise MXNetError("an elastic job has no servers")

    def leave(self) -> None:
        """End training for all, as this worker's script has ended."""
        if not self._end.leave() or self._job is None or self._over:
            return
        if self._state.session is not None:
            self._state.session.end_for_all(_END_SECONDS)
        self._job.leave()
        self._job.close()

    def abort(self, status: int = 1) -> None:
        """Leave the job as a failed worker. The other workers continue."""
        if self._end.leave(status) and self._job is not None:
            self._job.close()


_stores: list[ElasticStore] = []


def abort(status: int) -> None:
    """Leave the job with this process's stores, as its script ends with an error."""
    for store in _stores:
        store.abort(status)
