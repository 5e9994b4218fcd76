"""The distributed key-value store that MXNet's Module, Trainer and scripts use."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import mxnet as mx
from mxnet import optimizer as opt
from mxnet.base import MXNetError

from hipress.autotune.explanation import Explanation
from hipress.config import CompressionConfig
from hipress.runtime import states
from hipress.topology import topologies
from mxnet_hipress import _engine, _job, _states
from mxnet_hipress._commands import STORE_SHIFT, Head, pack
from mxnet_hipress._errors import sentences
from mxnet_hipress._keys import Key, KeyTable, group, on_cpu, spread, with_row_ids
from mxnet_hipress._store import Store

STOCK_NAMES = (
    "dist",
    "dist_sync",
    "dist_async",
    "dist_device_sync",
    "dist_device_async",
    "dist_sync_device",
    "dist_async_device",
)
"""MXNet's distributed stores. MXNet ignores the case of these names."""


class KVStore(Store):
    """Drop-in for MXNet's dist stores, with compression of gradients in both directions.

    Calls return at once and run on MXNet's engine. An error, for example the death of another
    process, is raised as MXNetError where a pulled array is waited for, and by every later call.
    Arguments are MXNet's: a key (int or str) or a list of them, and an array per key or a list of
    arrays, one per device, which are summed before the push.

    Args:
        name: The store's type as scripts see it, for example "dist_sync".
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._node = _job.join(sync="async" not in name)
        self._number = self._node.stores
        self._node.stores += 1
        self._keys = KeyTable(self._number)
        self._optimizer_known = False
        self._unanswered: dict[int, Key] = {}  # pushed, but not pulled since
        self._rate: float | None = None  # rate on the servers, if the script may change it
        # In a job without servers, each worker runs the optimizer on identical sums, so that
        # weights stay identical bit for bit.
        self._local_update: Callable[[int, mx.nd.NDArray, mx.nd.NDArray], None] | None = None
        self._weights: dict[int, mx.nd.NDArray] = {}  # the optimizer's, by key number

    # ---- Values ----------------------------------------------------------------------------------

    def init(self, key: object, value: object) -> None:
        """Initialize keys with rank 0's values. All workers call it in the same order. Blocks.

        Values are float32, float16 or bfloat16, and are sent uncompressed. row_sparse values are
        float32 or float16.

        Raises:
            MXNetError: For a key that exists, an unsupported dtype, or values whose shapes or
                dtypes differ between workers.
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
            self._node.sparse.init(key, value)
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

        Args:
            key: A key or a list of keys.
            value: Gradients.
            priority: A higher priority goes first.

        Raises:
            MXNetError: For unknown keys, other shapes or dtypes than at init, or a failed job.
        """
        self._send_learning_rate()
        for user_key, arrays in group(key, value):
            entry = self._keys.get(user_key, "push")
            self._node.before_push((entry.number,), self._settle)
            self._check_optimizer(entry)
            self._observe(entry, arrays)
            if entry.sparse:
                self._node.sparse.push(entry, arrays, priority)
            elif self._local_update is not None:
                self._push_local(entry, entry.total(arrays), priority)
            elif len(arrays) > 1 or not _engine.push(entry.handle, arrays[0], priority):
                _engine.push(entry.handle, entry.total(arrays), priority)
            self._unanswered[entry.number] = entry

    def pull(
        self, key: object, out: object = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Pull values into every array of `out`: the result of this worker's latest push.

        Args:
            key: A key or a list of keys.
            out: Arrays to write.
            priority: A higher priority goes first.
            ignore_sparse: Skip row_sparse arrays instead of raising an error.

        Raises:
            MXNetError: For unknown keys, other shapes or dtypes than at init, or a failed job.
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
            at_once = len(arrays) == 1 and self._local_update is None
            if at_once and _engine.pull(entry.handle, arrays[0], priority):
                continue
            if ignore_sparse:
                arrays = [array for array in arrays if array.stype == "default"]
            if arrays:
                self._pull_arrays(entry, arrays, priority)

    def pushpull(self, key: object, value: object, out: object = None, priority: int = 0) -> None:
        """Push values and pull into `out`. Without `out`, the results replace the values."""
        self._send_learning_rate()
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
            self._observe(entry, pushed)
            self._unanswered.pop(entry.number, None)
            at_once = len(pushed) == len(pulled) == 1 and self._local_update is None
            if at_once and _engine.push_pull(entry.handle, pushed[0], pulled[0], priority):
                continue
            entry.check(pulled, "pull")
            total = entry.total(pushed)
            if self._local_update is not None:
                self._push_local(entry, total, priority)
                self._pull_arrays(entry, pulled, priority)
            elif total is pulled[0] or total is entry._buffer:
                _engine.push_pull(entry.handle, total, total, priority)
                spread(total, pulled)
            else:
                _engine.push(entry.handle, total, priority)
                self._pull_arrays(entry, pulled, priority)

    def row_sparse_pull(
        self, key: object, out: object = None, priority: int = 0, row_ids: object = None
    ) -> None:
        """Pull the rows `row_ids` of row_sparse keys, including this worker's latest push.

        Args:
            key: A key or a list of keys.
            out: row_sparse arrays. All rows that are not in `row_ids` become zero.
            priority: A higher priority goes first.
            row_ids: Row indices for each array, or one array of indices for all, in any order.

        Raises:
            MXNetError: For dense keys, unknown rows, other shapes, or a failed job.
        """
        if out is None or row_ids is None:
            raise MXNetError("row_sparse_pull needs out and row_ids")
        for user_key, arrays, ids in with_row_ids(key, out, row_ids):
            entry = self._keys.get(user_key, "pull rows of")
            if not entry.sparse:
                raise MXNetError(
                    f"key {user_key!r} is dense: only keys initialized with a row_sparse value "
                    "have rows to pull"
                )
            self._node.sparse.pull_rows(entry, arrays, ids, priority)

    # ---- Settings --------------------------------------------------------------------------------

    def set_gradient_compression(
        self, compression_params: Mapping[str, object] | CompressionConfig
    ) -> None:
        """Compress the gradients of all later pushes, and the sums that are pulled.

        A store with one of MXNet's names and only MXNet's parameters, such as {"type": "2bit",
        "threshold": 0.5}, does what MXNet does: it compresses gradients of every size, but no
        pulled values.

        Args:
            compression_params: type ("auto", which chooses by measurements, "none", "2bit", "1bit",
                "onebit", ...) and its parameters; topology ("ps", "ring", "colocated", ...) and
                plan (a file, or "auto"), before the first key.

        Raises:
            MXNetError: For an unknown type or parameter. The message lists the allowed ones.
        """
        if not isinstance(compression_params, (Mapping, CompressionConfig)):
            raise MXNetError(
                f"compression_params must be a dict such as {{'type': '2bit'}}, "
                f"got {compression_params!r}"
            )
        _engine.flush(self._node.handle)
        with sentences():
            config = CompressionConfig.of(compression_params)
        stock = config is not compression_params and self._name.lower() in STOCK_NAMES
        if stock and compression_params.keys() <= {"type", "threshold"}:
            if compression_params.get("type") in ("none", "2bit"):
                config = replace(config, min_size=0, pull="none")  # MXNet's results, bit for bit
        self._node.set_gradient_compression(config)
        self._node.compresses = config.type != "none"

    def explain(self) -> Explanation:
        """Return the reasons for the current method and the measurements, as a printable object."""
        return self._node.explain()

    @property
    def is_settled(self) -> bool:
        """Whether the automatic choice of a method has ended."""
        return self._node.is_settled

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Run `optimizer` on the servers from now on, so that pulls return weights. Blocks.

        The previous optimizer makes the steps of earlier pushes. Without servers each worker runs
        the optimizer. Weights then stay equal on all workers if all set the same one. Unlike in
        MXNet's stores, lr_mult and wd_mult of Gluon parameters take effect.
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

    def _send_learning_rate(self) -> None:
        """Send a new learning rate, set by Trainer.set_learning_rate, to the servers.

        It applies from the next step on, which no server makes before worker 0 has pushed.
        """
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
        self._local_update = updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Save all servers' optimizer states in one file, and this worker's residuals in another.

        Every worker calls it after the same step. The optimizer's states, which are the same for
        all workers, go to `fname`, and the states of compression as in save_compression_states.
        Blocks.

        Args:
            fname: The file.
            dump_optimizer: Whether to save the optimizer itself.
        """
        self._settle()
        if self._node.serverless:
            by_server = [self._local_updater().get_states(dump_optimizer)]
        else:
            self._await_answers()  # otherwise servers may not have made the last push's step
            flag = b"1" if dump_optimizer else b""
            by_server = self._send_command_to_servers(Head.GET_STATES, flag)
        _states.write(fname, by_server, dump_optimizer, not self._node.serverless)
        self.save_compression_states(fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Load states saved by save_optimizer_states in a job with as many servers. Blocks.

        Every worker calls it when all keys are initialized. If the states of compression are
        missing or do not match this job, a warning is issued and compression starts without them.

        Raises:
            MXNetError: If the file is missing, of another kind, or from another number of servers.
                States are then unchanged.
        """
        by_server, has_optimizer = _states.read(fname, not self._node.serverless)
        if self._node.serverless:
            self._local_updater().set_states(by_server[0])
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

    def _local_updater(self) -> opt.Updater:
        if not isinstance(self._local_update, opt.Updater):
            raise MXNetError("this store has no optimizer with states: call set_optimizer first")
        return self._local_update

    def save_compression_states(self, fname: str) -> None:
        """Save the states of compression: residuals, momentum of codecs, counters of random ones.

        Every worker calls it after the same step. Each worker writes `fname`.worker-RANK; worker
        0's file also holds the servers' states. Without states no file is written. Blocks.

        Raises:
            MXNetError: If the file cannot be written. An existing file is then unchanged.
        """
        self._settle()
        with sentences():
            states.save(self._node, fname, *self._range())

    def load_compression_states(self, fname: str) -> None:
        """Load states saved by save_compression_states in a job of the same shape.

        Training then continues bit for bit. Every worker calls it when all keys are initialized.
        Blocks.

        Raises:
            MXNetError: If the file is missing or incomplete, or if the job's shape or keys differ.
                This worker's states are then unchanged.
        """
        if not self._load_compression(fname):
            path = states.path_of(fname, self.rank)
            raise MXNetError(f"cannot read the compression states {path}: there is no such file")

    def resume_compression(self, fname: str) -> None:
        """Load states saved by save_compression_states if they exist and match this job.

        Otherwise, issue a warning. Blocks.
        """
        try:
            lost = not self._load_compression(fname) and self._node.compresses
            why = f"there is no {states.path_of(fname, self.rank)}" if lost else ""
        except MXNetError as error:
            if self._node.failure():
                raise
            why = str(error)
        if why:
            warnings.warn(f"compression starts without what it remembered: {why}", stacklevel=2)

    def _load_compression(self, fname: str) -> bool:
        self._settle()
        with sentences():
            parts = states.read(self._node, fname)
            if parts is not None:
                states.load(self._node, parts, *self._range())
        return parts is not None

    def _range(self) -> tuple[int, int]:
        """Return the first and last number of this store's keys."""
        return self._number << STORE_SHIFT, (self._number + 1 << STORE_SHIFT) - 1

    def _settle(self) -> None:
        """Block until all pushes and pulls have completed."""
        mx.nd.waitall()
        self._node.wait_all()
        if not self._node.sync:
            self._await_answers()

    def _await_answers(self) -> None:
        """Block until servers have applied all pushes.

        A push completes when it is sent. Only pulls are answered.
        """
        unanswered, self._unanswered = self._unanswered, {}
        sparse = [key for key in unanswered.values() if key.sparse]
        dense = [key for key in unanswered.values() if not key.sparse]
        for key in dense:
            self._pull_arrays(key, [key.buffer], 0)
        for key in dense:
            key.buffer.wait_to_read()
        for key in sparse:
            self._node.sparse.await_pushes(key)

    # ---- The job ---------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The rank of this worker, from 0."""
        return self._node.rank

    @property
    def num_workers(self) -> int:
        """Workers in the job."""
        return self._node.num_workers

    @property
    def num_servers(self) -> int:
        """Servers in the job."""
        return self._node.num_servers

    def num_dead_node(self, node_id: int = 7) -> int:
        """Return the number of dead nodes: `node_id` adds 1 scheduler, 2 servers, 4 workers."""
        return self._node.num_dead_node(node_id)

    def stats(self) -> dict:
        """Return counters of this worker, such as bytes pushed, pulled and saved by compression."""
        return self._node.stats()

    def barrier(self) -> None:
        """Block until every worker has called it.

        In an asynchronous job the servers have then applied all earlier pushes.
        """
        if not self._node.sync:
            self._settle()
        self._node.barrier()

    _barrier = barrier

    def _send_command_to_servers(self, head: int, body: str | bytes) -> list[bytes]:
        """Send a command to all servers and return their answers. Blocks."""
        body = body.encode() if isinstance(body, str) else body
        return [self._command(server, head, body) for server in range(self.num_servers)]

    def _command(self, server: int, head: int, body: bytes) -> bytes:
        _engine.flush(self._node.handle)
        return self._node.command(server, int(head), pack(self._number, body))

    # ---- Arrays ----------------------------------------------------------------------------------

    def _observe(self, key: Key, arrays: list[mx.nd.NDArray]) -> None:
        """Pass a gradient to type "auto" in steps in which it observes gradients. Blocks then."""
        if self._node.observes and not key.sparse:
            total = key.total(arrays).as_nd_ndarray().astype("float32")
            self._node.observe((key.number,), [total.asnumpy()])

    def _check_optimizer(self, key: Key) -> None:
        """Check that the servers have an optimizer for an asynchronous push or a row_sparse key.

        Without one, a server could not apply them. MXNet's store uses the latest push's rows for
        all rows.
        """
        if self._optimizer_known or (self._node.sync and not key.sparse):
            return
        if not all(self._send_command_to_servers(Head.HAS_OPTIMIZER, b"")):
            what = f"row_sparse key {key.user_key!r}" if key.sparse else self.type
            raise MXNetError(
                f"{what} needs an optimizer on the servers: call set_optimizer before push"
            )
        self._optimizer_known = True

    def _pull_arrays(self, key: Key, arrays: list[mx.nd.NDArray], priority: int) -> None:
        key.check_dense(arrays)
        if self._local_update is not None:
            spread(self._local_weight(key), arrays)
            return
        first = next((array for array in arrays if on_cpu(array)), None)
        if first is None:
            first = key.buffer
        _engine.pull(key.handle, first, priority)
        spread(first, arrays)

    def _local_weight(self, key: Key) -> mx.nd.NDArray:
        """Return a key's weight in a job without servers, which starts as the store's value."""
        weight = self._weights.get(key.number)
        if weight is None:
            weight = self._weights[key.number] = key.new_array()
            _engine.pull(key.handle, weight, 0)
        return weight

    def _push_local(self, key: Key, gradient: mx.nd.NDArray, priority: int) -> None:
        """Sum a gradient over the workers and update the weight, without blocking."""
        weight, total = self._local_weight(key), key.buffer
        if gradient is not total:
            gradient.as_nd_ndarray().reshape(total.shape).copyto(total)
        _engine.push_pull(key.handle, total, total, priority)
        self._local_update(key.index, total, weight)


def _rate_of(optimizer: opt.Optimizer) -> float | None:
    """Return the learning rate, unless a schedule sets it."""
    return None if optimizer.lr_scheduler is not None else optimizer.lr
