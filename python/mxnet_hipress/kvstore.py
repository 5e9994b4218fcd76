"""The distributed key-value store that MXNet's Module, Trainer and scripts use."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.autotune.explanation import Explanation
from hipress.config import CompressionConfig
from hipress.topology import topologies
from mxnet_hipress import _arrays, _engine, _states, _stock
from mxnet_hipress._commands import Head
from mxnet_hipress._errors import sentences
from mxnet_hipress._keys import Key, KeyTable, group, with_row_ids
from mxnet_hipress._local import LocalOptimizer
from mxnet_hipress._saved_store import SavedStore


class KVStore(SavedStore):
    """Drop-in for MXNet's dist stores, with compression of gradients in both directions.

    Calls return at once and run on MXNet's engine; an error, for example that another process
    died, is raised as MXNetError where an array that was pulled is waited for, and by every later
    call. Arguments are MXNet's: a key (int or str) or a list of them, an array per key or a list
    of them (one per device, summed before they are pushed).

    :param name: the type that scripts see, e.g. "dist_sync"
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._keys = KeyTable(self._number)
        self._optimizer_known = False
        self._unanswered: dict[int, Key] = {}  # pushed, and not pulled since
        self._rate: float | None = None  # that servers have, if the script may change it
        self._local: LocalOptimizer | None = None  # without servers, once there is an optimizer

    # ---- Values ----------------------------------------------------------------------------------

    def init(self, key: object, value: object) -> None:
        """Initialize keys with rank 0's values; all workers call it in the same order. Blocks.

        Values are float32, float16 or bfloat16, and never compressed. row_sparse ones are
        float32 or float16.

        :raises MXNetError: for a key that exists, an unsupported dtype, or values whose shapes or
            dtypes differ between workers
        """
        for user_key, arrays in group(key, value):
            if len(arrays) != 1:
                raise MXNetError(f"init of key {user_key!r} takes one value, got {len(arrays)}")
            self._init_key(self._keys.new(user_key, arrays[0]), arrays[0])

    def _init_key(self, key: Key, value: mx.nd.NDArray) -> None:
        if key.sparse and self._node.serverless:
            raise MXNetError(
                f"key {key.user_key!r} is row_sparse: such keys need servers, and topology "
                f"{self._node.topology} uses none; choose topology "
                + topologies.either(topologies.names(servers=True))
            )
        if key.sparse:
            self._job.sparse.init(key, value)
        elif value.stype != "default":
            raise MXNetError(
                f"key {key.user_key!r} has storage type {value.stype}; "
                "a distributed store holds default and row_sparse"
            )
        else:
            data = None
            if self.rank == 0:
                value = value.as_in_context(mx.cpu())
                data = _engine.data_pointer(value)
            compress = self._node.compresses_shape(key.shape)
            self._node.init(key.number, str(key.user_key), data, key.size, key.dtype, compress)
            key.handle = _engine.key_handle(
                self._node.handle, key.number, key.name, key.size, key.dtype
            )
        self._keys.add(key)

    def push(self, key: object, value: object, priority: int = 0) -> None:
        """Push gradients, summed over devices and, on the servers, over workers.

        row_sparse gradients of dense keys are pushed as dense ones.

        :param priority: higher goes first
        :raises MXNetError: for unknown keys, other shapes or dtypes than at init, a failed job
        """
        self._heed_learning_rate()
        for user_key, arrays in group(key, value):
            entry = self._keys.get(user_key, "push")
            self._node.before_push((entry.number,), self._settle)
            self._check_optimizer(entry)
            self._look(entry, arrays)
            if entry.sparse:
                self._job.sparse.push(entry, arrays, priority)
            elif self._local is not None:
                self._local.push(entry, _arrays.total(entry, arrays), priority)
            elif len(arrays) > 1 or not _engine.push(entry.handle, arrays[0], priority):
                _engine.push(entry.handle, _arrays.total(entry, arrays), priority)
            self._unanswered[entry.number] = entry

    def pull(
        self, key: object, out: object = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Pull values into every array of `out`: the result of this worker's latest push.

        :param ignore_sparse: skip row_sparse arrays instead of refusing them
        :raises MXNetError: for unknown keys, other shapes or dtypes than at init, a failed job
        """
        if out is None:
            raise MXNetError("pull needs out, the arrays to pull into")
        for user_key, arrays in group(key, out):
            entry = self._keys.get(user_key, "pull")
            if entry.sparse:
                if not ignore_sparse or any(array.stype == "default" for array in arrays):
                    raise MXNetError(f"key {user_key!r} is row_sparse: use row_sparse_pull")
                continue  # as MXNet's stores
            if self._unanswered:
                self._unanswered.pop(entry.number, None)
            at_once = len(arrays) == 1 and self._local is None
            if at_once and _engine.pull(entry.handle, arrays[0], priority):
                continue
            if ignore_sparse:
                arrays = [array for array in arrays if array.stype == "default"]
            if arrays:
                self._pull_arrays(entry, arrays, priority)

    def pushpull(self, key: object, value: object, out: object = None, priority: int = 0) -> None:
        """push and pull in one; without `out`, the results replace the values."""
        self._heed_learning_rate()
        values = group(key, value)
        outs = values if out is None else group(key, out)
        for (user_key, pushed), (_, pulled) in zip(values, outs):
            entry = self._keys.get(user_key, "push")
            self._node.before_push((entry.number,), self._settle)
            self._check_optimizer(entry)
            if entry.sparse:
                raise MXNetError(
                    f"pushpull does not take row_sparse keys such as {user_key!r}: "
                    "use push and row_sparse_pull"
                )
            self._look(entry, pushed)
            self._unanswered.pop(entry.number, None)
            at_once = len(pushed) == len(pulled) == 1 and self._local is None
            if at_once and _engine.push_pull(entry.handle, pushed[0], pulled[0], priority):
                continue
            _arrays.check(entry, pulled, "pull")
            total = _arrays.total(entry, pushed)
            if self._local is not None:
                self._local.push(entry, total, priority)
                self._pull_arrays(entry, pulled, priority)
            elif total is pulled[0] or total is entry._buffer:
                _engine.push_pull(entry.handle, total, total, priority)
                _arrays.spread(total, pulled)
            else:
                _engine.push(entry.handle, total, priority)
                self._pull_arrays(entry, pulled, priority)

    def row_sparse_pull(
        self, key: object, out: object = None, priority: int = 0, row_ids: object = None
    ) -> None:
        """Pull the rows `row_ids` of row_sparse keys, with this worker's latest push in them.

        :param out: row_sparse arrays; all other rows of theirs are zero afterwards
        :param row_ids: for each array, or one for all; in any order, repeated or not
        :raises MXNetError: for dense keys, rows that a key has not, other shapes, a failed job
        """
        if out is None or row_ids is None:
            raise MXNetError("row_sparse_pull needs out and row_ids")
        for user_key, arrays, ids in with_row_ids(key, out, row_ids):
            entry = self._keys.get(user_key, "pull rows of")
            if not entry.sparse:
                raise MXNetError(
                    f"key {user_key!r} is dense: only keys initialised with a row_sparse value "
                    "have rows to pull"
                )
            self._job.sparse.pull_rows(entry, arrays, ids, priority)

    # ---- Settings --------------------------------------------------------------------------------

    def set_gradient_compression(
        self, compression_params: Mapping[str, object] | CompressionConfig
    ) -> None:
        """Compress the gradients of all later pushes, and the sums that come back.

        A store with one of MXNet's names that is told nothing MXNet does not know, such as
        {"type": "2bit", "threshold": 0.5}, does what MXNet does: gradients of every size are
        compressed, what is pulled is not.

        :param compression_params: type ("auto", which chooses by what workers measure, "none",
            "2bit", "1bit", "onebit", ...) and its parameters;
            topology ("ps", "ring", "colocated", ...) and plan (a file, or "auto"), before the
            first key
        :raises MXNetError: for an unknown type or parameter; the sentence lists what is allowed
        """
        if not isinstance(compression_params, (Mapping, CompressionConfig)):
            raise MXNetError(
                f"compression_params must be a dict such as {{'type': '2bit'}}, "
                f"got {compression_params!r}"
            )
        _engine.flush(self._node.handle)
        with sentences():
            config = _stock.compression(self._name, compression_params)
        self._node.set_gradient_compression(config)
        self._job.compresses = config.type != "none"

    def explain(self) -> Explanation:
        """Why gradients are synchronized as they are, and what was measured; to be printed."""
        return self._node.explain()

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way any more, where compression chooses by itself."""
        return self._node.is_settled

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Run `optimizer` on the servers from now on; pulls then return weights. Blocks.

        Steps of what was pushed before are made by the optimizer that was there before.
        Without servers each worker runs it, which leads to the same weights everywhere as long as
        all have set the same one. Unlike MXNet's own, lr_mult and wd_mult of Gluon parameters are
        heeded.
        """
        self._node.optimizers[self._number] = optimizer
        if self._node.serverless:
            self._updater = opt.get_updater(optimizer)
            self._set_updater(self._updater)
            return
        if self._optimizer_known:
            self._settle()
            self._await_answers()
        body = pickle.dumps(_states.portable(optimizer), 0)
        self._send_command_to_servers(Head.SET_OPTIMIZER, body)
        self._optimizer_known = True
        self._updater = opt.get_updater(optimizer)
        self._rate = _rate_of(optimizer)
        if self._node.auto is not None:
            self._node.auto.values_change()

    def _heed_learning_rate(self) -> None:
        """Tell servers of another rate, as Trainer.set_learning_rate sets it: from the next step
        on, which none of them makes before worker 0 has pushed."""
        rate = self._rate
        if rate is None or self._updater.optimizer.lr == rate:
            return
        self._rate = self._updater.optimizer.lr
        if self.rank == 0:
            self._settle()
            self._await_answers()
            self._send_command_to_servers(Head.SET_RATE, repr(float(self._rate)).encode())

    def _set_updater(self, updater: object) -> None:
        if not self._node.serverless:
            raise MXNetError(
                "a distributed store runs optimizers on its servers: use set_optimizer"
            )
        if self._local is None:
            self._local = LocalOptimizer(self._node, updater)
        self._local.update = updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save all servers' optimizer states in one file, and this worker's residuals beside it.

        Every worker calls it, after the same step: the optimizer's states, which are everybody's,
        go to `fname`, and what compression remembers as save_compression_states says. Blocks.

        :param dump_optimizer: save the optimizer itself, too
        """
        self._settle()
        if self._node.serverless:
            by_server = [self._local_optimizer().states(dump_optimizer)]
        else:
            self._await_answers()  # else servers may not have made the last push's step
            flag = b"1" if dump_optimizer else b""
            by_server = self._send_command_to_servers(Head.GET_STATES, flag)
        _states.write(fname, by_server, dump_optimizer, self._whose_states)
        self.save_compression_states(fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Load what save_optimizer_states saved, from a job with as many servers. Blocks.

        Every worker calls it, when all keys are initialized. If what compression remembered is not
        there, or does not fit this job, a warning says so, and compression starts afresh.

        :raises MXNetError: for no file, another kind of file, or one from another number of
            servers; then the states are as before
        """
        by_server, has_optimizer = _states.read(fname, self._whose_states)
        if self._node.serverless:
            self._local_optimizer().set_states(by_server[0])
        elif len(by_server) != self.num_servers:
            raise MXNetError(
                f"{fname} holds the optimizer states of {len(by_server)} servers, "
                f"and this job has {self.num_servers}"
            )
        else:
            for server, state in enumerate(by_server):
                self._command(server, Head.SET_STATES, state)
            self._optimizer_known = True
            if has_optimizer:
                self._updater = opt.get_updater(_states.unpickled(by_server[0])[1])
                self._rate = _rate_of(self._updater.optimizer)
        self.resume_compression(fname)

    def _local_optimizer(self) -> LocalOptimizer:
        if self._local is None:
            raise MXNetError("this store has no optimizer: call set_optimizer first")
        return self._local

    def _settle(self) -> None:
        """Block until all that was pushed and pulled is over."""
        mx.nd.waitall()
        self._node.wait_all()
        if not self._job.sync:
            self._await_answers()

    @property
    def _whose_states(self) -> str:
        return _states.WORKERS if self._node.serverless else _states.SERVERS

    def _await_answers(self) -> None:
        """Block until servers have applied what was pushed: a push is over when it is sent, and
        nothing but a pull is answered."""
        unanswered, self._unanswered = self._unanswered, {}
        sparse = [key for key in unanswered.values() if key.sparse]
        dense = [key for key in unanswered.values() if not key.sparse]
        for key in dense:
            self._pull_arrays(key, [key.buffer], 0)
        for key in dense:
            key.buffer.wait_to_read()
        for key in sparse:
            self._job.sparse.await_pushes(key)

    # ---- The job ---------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Block until every worker is here.

        In an asynchronous job the servers have then applied all that was pushed before.
        """
        if not self._job.sync:
            self._settle()
        self._node.barrier()

    _barrier = barrier

    # ---- Arrays ----------------------------------------------------------------------------------

    def _look(self, key: Key, arrays: list[mx.nd.NDArray]) -> None:
        """Have type "auto" observe a gradient, in the few steps in which it does. Blocks then."""
        if self._node.observes and not key.sparse:
            total = _arrays.total(key, arrays).as_nd_ndarray().astype("float32")
            self._node.observe((key.number,), [total.asnumpy()])

    def _check_optimizer(self, key: Key) -> None:
        """Without an optimizer, a server would not know what to do with an asynchronous push, or
        with rows: MXNet's own takes those of the latest push for all rows."""
        if self._optimizer_known or (self._job.sync and not key.sparse):
            return
        if not all(self._send_command_to_servers(Head.HAS_OPTIMIZER, b"")):
            what = f"row_sparse key {key.user_key!r}" if key.sparse else self.type
            raise MXNetError(
                f"{what} needs an optimizer on the servers: call set_optimizer before push"
            )
        self._optimizer_known = True

    def _pull_arrays(self, key: Key, arrays: list[mx.nd.NDArray], priority: int) -> None:
        _arrays.check_dense(key, arrays)
        if self._local is not None:
            _arrays.spread(self._local.weight(key), arrays)
            return
        first = next((array for array in arrays if _arrays.on_cpu(array)), None)
        if first is None:
            first = key.buffer
        _engine.pull(key.handle, first, priority)
        _arrays.spread(first, arrays)


def _rate_of(optimizer: opt.Optimizer) -> float | None:
    """Return the learning rate, unless a schedule sets it."""
    return None if optimizer.lr_scheduler is not None else optimizer.lr
