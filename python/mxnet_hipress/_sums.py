"""Sums of gradients over a view's workers, as MXNet arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import mxnet as mx

from hipress.elastic.training.sums import Sums


class SumArrays:
    """Memory in which the workers of the present view sum gradients."""

    def __init__(self) -> None:
        self._arrays: dict[str, mx.nd.NDArray] = {}
        self._sums: Sums | None = None

    def reduce(
        self, sums: Sums, gradients: Mapping[str, mx.nd.NDArray]
    ) -> Iterator[tuple[str, mx.nd.NDArray]]:
        """Sum gradients over the workers.

        Args:
            sums: Sums of the present view.
            gradients: Arrays on the CPU by name, which are not changed.

        Returns:
            Iterator over (name, sum), last layers first. The next call overwrites the sums.

        Raises:
            hipress.HipressError: If a worker has died or is silent.
        """
        arrays = self._memory(sums, gradients)
        sums.begin_step()
        pending = []
        for bucket in sums.buckets:
            for name in bucket.slices:
                gradients[name].copyto(arrays[name])
            for name in bucket.slices:  # the layers before go on with the backward pass
                arrays[name].wait_to_read()
            pending.append((sums.start(bucket), bucket))
        for future, bucket in pending:
            future.result()
            yield from ((name, arrays[name]) for name in bucket.slices)

    def _memory(
        self, sums: Sums, gradients: Mapping[str, mx.nd.NDArray]
    ) -> dict[str, mx.nd.NDArray]:
        """Return arrays in the memory of the sums, by the gradients' names.

        MXNet's engine orders all operations on them except the sum itself. No other operation
        runs during the sum.
        """
        if self._sums is not sums:
            self._sums, self._arrays = sums, {}
            for bucket in sums.buckets:
                for name, span in bucket.slices.items():
                    part = bucket.flat[span].reshape(gradients[name].shape)
                    self._arrays[name] = mx.nd.from_numpy(part, zero_copy=True)
        return self._arrays
